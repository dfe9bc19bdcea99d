// What scrolls sideways can be reached with the keyboard.
const reachable = () =>
  document.querySelectorAll(".md-typeset__scrollwrap, pre > code").forEach((part) => part.setAttribute("tabindex", "0"));
document.readyState === "complete" ? setTimeout(reachable) : addEventListener("load", () => setTimeout(reachable));
