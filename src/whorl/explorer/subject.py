"""What all subjects of the views have in common: frames from a start to an end."""


class Subject:
    """Something to look at, frame by frame."""

    note: str = ""  # why it ended early, if it did

    @property
    def clock(self) -> tuple[str, float, str]:
        """What a frame is: its name, how much of it, and the unit."""
        return "Update", 1, ""

    @property
    def made(self) -> int:
        """Frames after the first."""
        return 0

    def moment(self, frame: int) -> int:
        """The moment that a frame shows; what ended early stays at its end."""
        return min(frame, self.made)
