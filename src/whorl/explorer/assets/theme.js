// Before anything is painted: light or dark, as chosen here before, or as the system has it.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("whorl-theme"); } catch { /* no storage: nothing was chosen */ }
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = chosen === "dark" || chosen === "light" ? chosen : dark ? "dark" : "light";
})();
