// One tooltip for all charts, beside the pointer and never outside of the window.
import { make } from "./elements";

const box = make("div", { class: "tip", role: "status", hidden: "" });

export function showTip(event: MouseEvent, lines: string[]): void {
  if (!box.isConnected) document.body.append(box);
  box.replaceChildren(...lines.filter(Boolean).map((line, at) => make(at === 0 ? "b" : "div", {}, line)));
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const left = event.clientX + 14 + width > innerWidth ? event.clientX - width - 10 : event.clientX + 14;
  const top = event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, top)}px`;
}

export function hideTip(): void {
  box.hidden = true;
}
