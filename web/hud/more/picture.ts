/** A picture of a part of the page as it stands: surfaces, lines, canvases, shapes and texts, without asking the browser for one. */

interface Area {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

const within = (a: Area, b: Area): Area => ({ left: Math.max(a.left, b.left), top: Math.max(a.top, b.top), right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom) });
const isEmpty = (area: Area) => area.right <= area.left || area.bottom <= area.top;
const SEEN = 1.5;
/** Elements: a page has some thousands. */
const MOST = 20_000;

function outline(element: SVGElement): Path2D | null {
  const at = (name: string) => Number(element.getAttribute(name) ?? 0);
  const path = new Path2D();
  switch (element.tagName) {
    case "path":
      return new Path2D(element.getAttribute("d") ?? "");
    case "rect":
      path.rect(at("x"), at("y"), at("width"), at("height"));
      return path;
    case "circle":
      path.arc(at("cx"), at("cy"), at("r"), 0, 2 * Math.PI);
      return path;
    case "line":
      path.moveTo(at("x1"), at("y1"));
      path.lineTo(at("x2"), at("y2"));
      return path;
    case "polyline":
    case "polygon":
      return new Path2D(`M${element.getAttribute("points") ?? ""}${element.tagName === "polygon" ? "Z" : ""}`);
    default:
      return null;
  }
}

/** As a `data:` address, a WebP where the browser writes them; null if there is nothing to draw on. */
export function pictureOf(root: HTMLElement): string | null {
  const frame = root.getBoundingClientRect();
  const [scale, area]: [number, Area] = [SEEN, within(frame, { left: 0, top: 0, right: innerWidth, bottom: innerHeight })];
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil((area.right - area.left) * scale);
  canvas.height = Math.ceil((area.bottom - area.top) * scale);
  const pen = canvas.getContext("2d");
  if (!pen || isEmpty(area)) return null;
  const plain = () => pen.setTransform(scale, 0, 0, scale, -area.left * scale, -area.top * scale);
  plain();
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(area.left, area.top, area.right, area.bottom);
  let left = MOST;

  const clipped = (clip: Area, draw: () => void) => {
    pen.save();
    pen.beginPath();
    pen.rect(clip.left, clip.top, clip.right - clip.left, clip.bottom - clip.top);
    pen.clip();
    draw();
    pen.restore();
    plain();
  };
  const surface = (box: DOMRect, style: CSSStyleDeclaration) => {
    pen.fillStyle = style.backgroundColor;
    pen.beginPath();
    pen.roundRect(box.left, box.top, box.width, box.height, Math.min(14, Number.parseFloat(style.borderTopLeftRadius) || 0));
    pen.fill();
    const line = (width: string, color: string, kind: string, x: number, y: number, w: number, h: number) => {
      if (!(Number.parseFloat(width) > 0) || kind === "none") return;
      pen.fillStyle = color;
      pen.fillRect(x, y, w || Number.parseFloat(width), h || Number.parseFloat(width));
    };
    line(style.borderTopWidth, style.borderTopColor, style.borderTopStyle, box.left, box.top, box.width, 0);
    line(style.borderBottomWidth, style.borderBottomColor, style.borderBottomStyle, box.left, box.bottom - Number.parseFloat(style.borderBottomWidth), box.width, 0);
    line(style.borderLeftWidth, style.borderLeftColor, style.borderLeftStyle, box.left, box.top, 0, box.height);
    line(style.borderRightWidth, style.borderRightColor, style.borderRightStyle, box.right - Number.parseFloat(style.borderRightWidth), box.top, 0, box.height);
  };
  const words = (node: Text, style: CSSStyleDeclaration) => {
    pen.fillStyle = style.color;
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    pen.textBaseline = "middle";
    const range = document.createRange();
    for (const word of node.data.matchAll(/\S+/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const box = range.getBoundingClientRect();
      if (box.width > 0) pen.fillText(word[0], box.left, box.top + box.height / 2);
    }
  };
  const shape = (element: SVGElement, style: CSSStyleDeclaration) => {
    const path = outline(element);
    const matrix = (element as SVGGraphicsElement).getScreenCTM?.();
    if (!path || !matrix) return;
    pen.transform(matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f);
    // A pattern stands on a ground.
    const ground = document.getElementById(/^url\("?#([^")]+)/.exec(style.fill)?.[1] ?? "")?.firstElementChild;
    const fill = ground ? getComputedStyle(ground).fill : style.fill;
    if (fill !== "none" && !fill.startsWith("url")) {
      pen.globalAlpha = Number(style.fillOpacity) * Number(style.opacity);
      pen.fillStyle = fill;
      pen.fill(path);
    }
    if (style.stroke !== "none" && !style.stroke.startsWith("url")) {
      pen.globalAlpha = Number(style.strokeOpacity) * Number(style.opacity);
      pen.strokeStyle = style.stroke;
      pen.lineWidth = style.vectorEffect === "non-scaling-stroke" ? 1 / Math.max(1e-6, Math.abs(matrix.a)) : Number.parseFloat(style.strokeWidth) || 1;
      pen.stroke(path);
    }
  };
  const walk = (element: Element, clip: Area): void => {
    left -= 1;
    const style = getComputedStyle(element);
    if (left < 0 || style.display === "none" || style.visibility === "hidden" || style.opacity === "0") return;
    const box = element.getBoundingClientRect();
    const cuts = style.overflowX !== "visible" || style.overflowY !== "visible" || style.clipPath !== "none";
    const inner = cuts ? within(clip, box) : clip;
    if (isEmpty(inner)) return;
    if (element.tagName === "defs") return;
    if (element instanceof SVGElement) clipped(inner, () => shape(element, style));
    else if (!isEmpty(within(clip, box))) {
      clipped(clip, () => surface(box, style));
      if (element instanceof HTMLCanvasElement && element.width > 0 && element.height > 0) clipped(inner, () => pen.drawImage(element, box.left, box.top, box.width, box.height));
    }
    if (element instanceof HTMLSelectElement || element instanceof HTMLInputElement) {
      const text = element instanceof HTMLSelectElement ? (element.selectedOptions[0]?.text ?? "") : ["checkbox", "file"].includes(element.type) ? "" : element.value || element.placeholder;
      clipped(inner, () => {
        pen.fillStyle = style.color;
        pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
        pen.textBaseline = "middle";
        pen.fillText(text.trim(), box.left + (Number.parseFloat(style.paddingLeft) || 4) + 1, box.top + box.height / 2, Math.max(1, box.width - 16));
      });
      return;
    }
    for (const child of element.childNodes) {
      if (child instanceof Text && child.data.trim() !== "") clipped(inner, () => words(child, style));
      else if (child instanceof Element) walk(child, inner);
    }
  };
  walk(root, area);
  return canvas.toDataURL("image/webp", 0.92);
}
