// Ask what shall happen when a question would leave turns out.

/** Ask, and return {choice, remember}; null if the person wants to think about it. */
export function decide(message) {
  const dialog = document.getElementById("overflow");
  const form = dialog.querySelector("form");
  // The rest of the message tells programs which field to send.
  form.querySelector(".message").textContent = message.split(" Say with on_overflow")[0];
  form.reset();
  dialog.returnValue = "";
  const asking = new AbortController();
  const whileAsking = { signal: asking.signal };
  return new Promise((resolve) => {
    form.addEventListener(
      "submit",
      (event) => {
        event.preventDefault();
        dialog.close(event.submitter.value);
      },
      whileAsking,
    );
    form.querySelector("[data-cancel]").addEventListener("click", () => dialog.close(""), whileAsking);
    dialog.addEventListener(
      "close",
      () => {
        asking.abort();
        const choice = dialog.returnValue;
        resolve(choice ? { choice, remember: form.elements.remember.checked } : null);
      },
      whileAsking,
    );
    dialog.showModal();
  });
}
