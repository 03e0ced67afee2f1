"""What all subjects of the views have in common: frames from a start to an end."""


class Subject:
    """Something to look at, frame by frame."""

    clock: tuple[str, float, str] = ("Update", 1, "")  # a frame's name, how much it is, its unit
    note: str = ""  # why it ended early, if it did

    @property
    def made(self) -> int:
        """Frames after the first."""
        return 0

    def moment(self, frame: int) -> int:
        """The moment that a frame shows; what ended early stays at its end."""
        return min(frame, self.made)
