// What pages of `plimsoll serve` do beyond being read: they follow a study that runs, copy a command line, and show the command line
// that a form means. Every page can be read without this.
"use strict";

for (const place of document.querySelectorAll("[data-follow]")) follow(place);

// Asks once a second how far a study is, and shows it; a page that nobody looks at does not ask.
function follow(place) {
  const address = place.dataset.follow;
  let asking = false;
  const ask = async () => {
    if (document.hidden || asking) return;
    asking = true;
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        // The server escapes all text of its answer; no script of it would run.
        place.innerHTML = await answer.text();
        if (answer.headers.get("X-Study-Ended") === "1") {
          clearInterval(timer);
          location.reload();
        }
      }
    } catch { /* The server is gone; the study goes on. */ }
    asking = false;
  };
  const timer = setInterval(ask, 1000);
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

// Fields that a study does not take are hidden.
const study = document.querySelector("select[name=study]");
if (study) {
  const choose = () => {
    for (const part of document.querySelectorAll("[data-of]")) {
      part.hidden = !part.dataset.of.split(" ").includes(study.value);
    }
  };
  study.addEventListener("change", choose);
  choose();
}
