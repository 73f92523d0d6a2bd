/** Small pictures of numbers over time: in tiles, in the inspector. The numbers themselves stand in words beside them. */

export function Mini(props: { values: number[]; color: string; width?: number; height?: number; class?: string }) {
  const { values, color } = props;
  const [width, height] = [props.width ?? 72, props.height ?? 26];
  const top = Math.max(...values, 0) || 1;
  const step = width / Math.max(1, values.length);
  const y = (value: number) => (height - 1 - (Math.max(0, value) / top) * (height - 3)).toFixed(1);
  const line = values.map((value, at) => `${at === 0 ? "M" : "L"}${(at * step).toFixed(1)} ${y(value)}H${((at + 1) * step).toFixed(1)}`).join("");
  return (
    <svg class={props.class ?? "mini"} width={width} height={height} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      <path d={`${line}V${height}H0Z`} fill={`var(${color})`} fill-opacity="0.22" />
      <path d={line} fill="none" stroke={`var(${color})`} stroke-width="1.3" vector-effect="non-scaling-stroke" />
    </svg>
  );
}

/** Steps of a heat map. */
const STEPS = 6;

/** When something happened: a strip of the whole trace; darker where there is more of it, if that is known. */
export function Strip(props: { range: [number, number] | null; whole: [number, number]; line?: number[] | null }) {
  const [first, end] = props.whole;
  const at = (ns: number) => Math.max(0, Math.min(1, (ns - first) / Math.max(1, end - first)));
  const [left, right] = props.range ? [at(props.range[0]), at(props.range[1])] : [0, 1];
  const line = props.line ?? [];
  const top = Math.max(...line, 0);
  // Neighbours of one step are one box.
  const boxes: { from: number; to: number; step: number }[] = [];
  line.forEach((value, part) => {
    const inside = (part + 1) / line.length > left && part / line.length < right;
    const step = inside && value > 0 ? Math.ceil((STEPS * value) / top) : 0;
    const last = boxes[boxes.length - 1];
    if (last?.step === step) last.to = part + 1;
    else boxes.push({ from: part, to: part + 1, step });
  });
  return (
    <svg class="strip" viewBox={`0 0 ${line.length || 100} 1`} preserveAspectRatio="none" shape-rendering="crispEdges" aria-hidden="true">
      {top > 0
        ? boxes.map(({ from, to, step }) => step > 0 && <rect key={from} x={from} width={to - from} height="1" fill={`var(--k${step})`} />)
        : <rect x={left * (line.length || 100)} width={Math.max(1, (right - left) * (line.length || 100))} height="1" fill="var(--k5)" />}
    </svg>
  );
}
