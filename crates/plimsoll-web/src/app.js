// The script of the pages of `plimsoll serve`. The script updates the progress of a running study,
// copies command lines, and hides the form fields that do not apply to the chosen study. Every page
// is readable without this script.
"use strict";

for (const place of document.querySelectorAll("[data-follow]")) follow(place);

// Requests the progress of a study once a second, and shows the progress in `place`. A hidden page
// sends no requests.
function follow(place) {
  const address = place.dataset.follow;
  let asking = false;
  const ask = async () => {
    if (document.hidden || asking) return;
    asking = true;
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        // The server escapes all text in its response, so the response contains no script.
        place.innerHTML = await answer.text();
        if (answer.headers.get("X-Study-Ended") === "1") {
          clearInterval(timer);
          location.reload();
        }
      }
    } catch { /* The web server has ended. The study continues without it. */ }
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

// The form shows only the fields that apply to the chosen study.
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
