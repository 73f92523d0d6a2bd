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

/** When something happened: a strip of the whole trace. */
export function Strip(props: { range: [number, number] | null; whole: [number, number] }) {
  const [first, end] = props.whole;
  const at = (ns: number) => Math.max(0, Math.min(100, ((ns - first) / Math.max(1, end - first)) * 100));
  const [left, right] = props.range ? [at(props.range[0]), at(props.range[1])] : [0, 100];
  return (
    <span class="strip" aria-hidden="true">
      <i style={{ left: `${left}%`, width: `${Math.max(1, right - left)}%` }} />
    </span>
  );
}
