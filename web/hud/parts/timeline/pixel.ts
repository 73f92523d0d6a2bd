/** A colour as a pixel; canvases store red first, machines of today the lowest byte first. */
export function pixel(color: string): number {
  const hex = /^#(..)(..)(..)$/.exec(color);
  const parts = hex ? hex.slice(1).map((one) => Number.parseInt(one, 16)) : (color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
  const [r = 128, g = 128, b = 128] = parts;
  return (0xff000000 | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}
