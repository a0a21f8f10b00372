// Draws the formulas, in the form in which pymdownx.arithmatex leaves them: \(…\) in a span, \[…\] in a div.
// What KaTeX cannot draw is an error in the console, which the check of the site counts.
// Where a heading has the id "exports", KaTeX takes that element for the object of this name in Node.
const drawer = window.katex ?? exports.katex;
document$.subscribe(() => {
  for (const element of document.querySelectorAll(".arithmatex")) {
    const source = element.textContent.trim();
    drawer.render(source.slice(2, -2), element, { displayMode: element.tagName === "DIV" });
  }
});
