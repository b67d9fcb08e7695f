// Elements made without HTML text, so that nothing from a run is ever read as HTML.
import { printable } from "./words";

type Child = Node | string;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, printable(value));
  element.append(...children.map((child) => (typeof child === "string" ? printable(child) : child)));
  return element;
}

export function button(label: string, title: string, action: () => void): HTMLButtonElement {
  const made = make("button", { type: "button", title }, label);
  made.addEventListener("click", action);
  return made;
}

export function choice(label: string, options: [string, string][], action: (value: string) => void): HTMLElement {
  const select = make("select", {}, ...options.map(([value, words]) => make("option", { value }, words)));
  select.addEventListener("change", () => action(select.value));
  return make("label", {}, `${label} `, select);
}

export function search(label: string, action: (words: string) => void): HTMLInputElement {
  const input = make("input", { type: "search", placeholder: label, "aria-label": label });
  input.addEventListener("input", () => action(input.value.trim().toLowerCase()));
  return input;
}

/** The section of the page with this id, shown, with its link in the navigation. */
export function section(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no section ${id}`);
  found.hidden = false;
  const link = document.querySelector<HTMLElement>(`nav a[href="#${id}"]`);
  if (link !== null) link.hidden = false;
  return found;
}
