// What the theme leaves out for keyboards and screen readers: code and tables that scroll take the
// focus, and every region of navigation has its own name.
{
  const complete = () => {
    for (const area of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap")) {
      if (area.scrollWidth > area.clientWidth) area.tabIndex = 0;
      else area.removeAttribute("tabindex");
    }
    document.querySelectorAll(".md-code__nav").forEach((nav, i) => {
      nav.setAttribute("aria-label", `Code ${i + 1}`);
    });
    for (const nav of document.querySelectorAll("nav.md-nav[aria-labelledby]")) {
      const title = nav.querySelector(".md-nav__title")?.textContent.trim();
      nav.setAttribute("aria-label", `Pages of ${title}`);
      nav.removeAttribute("aria-labelledby");
    }
  };
  let waiting = 0; // one look after many changes
  const soon = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; complete(); }); };
  new MutationObserver(soon).observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", soon);
  soon();
}
