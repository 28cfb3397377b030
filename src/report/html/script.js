"use strict";
(() => {
  const filter = document.getElementById("filter");
  const field = (id) => document.getElementById(id);
  const sections = [...document.querySelectorAll("main section")].map((section) => ({
    section,
    cluster: section.dataset.cluster,
    units: [...section.querySelectorAll("details")].map((unit) => ({
      unit,
      name: unit.querySelector("summary").textContent.toLowerCase(),
      objects: [...unit.querySelectorAll("li")],
    })),
  }));

  function apply() {
    const [name, cluster, kind, state] = ["name", "cluster", "kind", "state"].map((id) => field(id).value);
    const words = name.toLowerCase();
    let shown = 0, all = 0;
    for (const { section, cluster: here, units } of sections) {
      let isAny = false;
      for (const { unit, name: title, objects } of units) {
        const isNamed = title.includes(words);
        let number = 0;
        for (const object of objects) {
          const fits = (!cluster || cluster === here) && (!kind || object.dataset.kind === kind) &&
            (!state || object.dataset.state === state) &&
            (isNamed || object.textContent.toLowerCase().includes(words));
          object.hidden = !fits;
          number += fits;
        }
        unit.hidden = number === 0;
        shown += number;
        all += objects.length;
        isAny ||= number > 0;
      }
      section.hidden = !isAny;
    }
    field("count").textContent = shown === all ? `${all} objects` : `${shown} of ${all} objects`;
  }

  filter.addEventListener("input", apply);
  filter.addEventListener("submit", (event) => event.preventDefault());
  filter.addEventListener("reset", () => setTimeout(apply));
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !isTyping) {
      event.preventDefault();
      field("name").focus();
    }
  });
  apply();
})();
