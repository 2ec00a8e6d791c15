// Build elements. Whatever comes from the server becomes text here, never markup.

export const $ = (id) => document.getElementById(id);

/** Make an element: properties (data-*, aria-* and class as attributes, on* as listeners) and children. */
export function h(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** The same for SVG. */
export function svg(name, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Set an element's text, only if it differs: what has not changed is not announced, selected text stays selected. */
export function text(element, value) {
  if (element.textContent !== String(value)) element.textContent = value;
}

/** Tell something to those who do not see it happen. */
export function say(sentence) {
  text($("said"), sentence);
}

const SURE = 4000; // milliseconds that a button waits for the second press

/** Make a button for what cannot be undone: it acts at the second press. */
export function twice(label, description, act) {
  let armed = 0;
  let busy = false;
  const button = h("button", { type: "button", class: "danger", "aria-label": `${label}: ${description}` }, label);
  const disarm = () => {
    clearTimeout(armed);
    armed = 0;
    text(button, label);
    button.setAttribute("aria-label", `${label}: ${description}`);
    delete button.dataset.armed;
  };
  button.addEventListener("click", async () => {
    if (busy) return;
    if (!armed) {
      armed = setTimeout(disarm, SURE);
      button.dataset.armed = "";
      text(button, "Sure?");
      button.setAttribute("aria-label", `Sure? ${label}: ${description}`);
      say(`Press again to ${label.toLowerCase()} ${description}`);
      return;
    }
    disarm();
    // Not `disabled`: a button that is would lose the focus.
    busy = true;
    button.setAttribute("aria-disabled", "true");
    try {
      await act();
    } catch (problem) {
      say(problem.message);
    } finally {
      busy = false;
      button.removeAttribute("aria-disabled");
    }
  });
  button.addEventListener("blur", () => armed && disarm());
  return button;
}
