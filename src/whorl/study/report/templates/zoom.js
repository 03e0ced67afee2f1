// A figure, enlarged: fitted to the window, or larger than it. On a phone it opens at a size that can be read, to be moved about.
{
  const dialog = document.getElementById("zoom");
  const image = dialog.querySelector("img");
  const size = dialog.querySelector(".size");
  const fit = (full) => {
    dialog.classList.toggle("full", full);
    size.textContent = full ? "Fit to window" : "Larger";
  };
  for (const button of document.querySelectorAll(".enlarge")) {
    button.addEventListener("click", () => {
      const small = button.querySelector("img");
      image.src = small.src;
      image.alt = small.alt;
      dialog.showModal();
      fit(dialog.clientWidth < 704);
    });
  }
  size.addEventListener("click", () => fit(!dialog.classList.contains("full")));
  image.addEventListener("click", () => fit(!dialog.classList.contains("full")));
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
}
