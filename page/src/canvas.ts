// A canvas as wide as its parent, sharp on every screen, drawn at most once a frame.

export class Canvas {
  readonly element = document.createElement("canvas");
  readonly context: CanvasRenderingContext2D;
  width = 0;
  height = 0;
  private waiting = false;
  /** How long the last drawing took, in milliseconds: for the tests. */
  lastMs = 0;

  constructor(
    parent: HTMLElement,
    label: string,
    private readonly draw: (context: CanvasRenderingContext2D) => void,
  ) {
    const context = this.element.getContext("2d");
    if (context === null) throw new Error("no canvas");
    this.context = context;
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", label);
    parent.append(this.element);
    new ResizeObserver(() => this.fit()).observe(parent);
    addEventListener("beforeprint", () => this.paint()); // there is no frame before the page is printed
  }

  resize(height: number): void {
    this.height = height;
    this.fit();
  }

  redraw(): void {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  private paint(): void {
    const since = performance.now();
    const ratio = devicePixelRatio;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.draw(this.context);
    this.lastMs = performance.now() - since;
  }

  private fit(): void {
    const width = this.element.parentElement?.clientWidth ?? 0;
    const ratio = devicePixelRatio;
    this.width = width;
    this.element.width = Math.round(width * ratio);
    this.element.height = Math.round(this.height * ratio);
    this.element.style.height = `${this.height}px`;
    this.redraw();
  }
}

/** `text` shortened to fit into `width` pixels at 11 px, whose letters are about 6.6 px wide; "" for none. */
export function fitting(text: string, width: number): string {
  const most = Math.floor((width - 6) / 6.6);
  if (most < 2) return "";
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
