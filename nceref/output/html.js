// A link to a result opens the table that it is in; everything else works without a script.
function reveal() {
  const there = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let one = there; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
  if (there) there.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => document.querySelectorAll("details.print").forEach((one) => (one.open = true)));
reveal();
