/** Line icons of one weight, and the shapes of severities: told apart without colour. */

const PATHS: Record<string, string> = {
  overview: "M3 11h3l2-6 3 11 2-5h4",
  stacks: "M3 15.5h14M3 11.5h9M3 7.5h6M3 3.8h3",
  cpu: "M5.5 7A1.5 1.5 0 0 1 7 5.5h6A1.5 1.5 0 0 1 14.5 7v6a1.5 1.5 0 0 1-1.5 1.5H7A1.5 1.5 0 0 1 5.500 13zM8 2.8v2.7M12 2.8v2.7M8 14.500v2.700M12 14.500v2.700M2.800 8h2.700M2.800 12h2.700M14.500 8h2.700M14.500 12h2.700",
  interrupts: "M11 2.500 4.500 11.500H9l-.8 6L15 8.500h-4.500z",
  threads: "M3 5h6M3 10h3M3 15h8M12 5h5M9 10h8M14 15h3M9 5v5M11 10v5",
  files: "M5.500 3H11l4 4v10H5.500zM11 3v4h4",
  disk: "M4 5.200C4 3.900 6.700 2.800 10 2.800s6 1.100 6 2.400-2.700 2.400-6 2.400-6-1.100-6-2.400v9.600c0 1.300 2.700 2.400 6 2.400s6-1.100 6-2.400V5.200M4 10c0 1.300 2.700 2.400 6 2.400s6-1.100 6-2.400",
  network: "M3.200 10a6.800 6.800 0 1 0 13.600 0 6.800 6.800 0 1 0-13.600 0h13.600M10 3.200c2.500 2 2.500 11.600 0 13.600M10 3.200c-2.500 2-2.500 11.600 0 13.600",
  memory: "M3 7a1 1 0 0 1 1-1h12a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1zM6 14v2.500M10 14v2.500M14 14v2.500M6 8.500v3M10 8.500v3M14 8.500v3",
  clr: "M15.500 7A6.200 6.200 0 0 0 4.300 7.800M4.500 13a6.200 6.200 0 0 0 11.200-.8M15.800 3.800V7h-3.200M4.200 16.200V13h3.200",
  events: "M4 5h.01M4 10h.01M4 15h.01M7.500 5H16M7.500 10H16M7.500 15H16",
  tables: "M3 5a1.500 1.500 0 0 1 1.500-1.500h11A1.500 1.500 0 0 1 17 5v10a1.500 1.500 0 0 1-1.500 1.500h-11A1.500 1.500 0 0 1 3 15zM3 8h14M8 8v8.500",
  sql: "m4 6 4 4-4 4M10 15h6",
  bill: "M5 3h10v14l-2.500-1.500L10 17l-2.500-1.500L5 17zM8 7h4M8 10.500h4",
  power: "M10 3v7M6 5.500a6 6 0 1 0 8 0",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  panels: "M3 5.500h14M3 10h14M3 14.500h14",
  search: "M3.800 9a5.200 5.200 0 1 0 10.400 0A5.200 5.200 0 1 0 3.800 9M13 13l3.800 3.800",
  undo: "M7.500 4.500 4 8l3.500 3.500M4 8h7.500a4 4 0 0 1 0 8H9",
  redo: "M12.500 4.500 16 8l-3.500 3.500M16 8H8.500a4 4 0 0 0 0 8H11",
  compare: "M7 3.500v13M13 3.500v13M3.500 7H7M13 7h3.500M3.500 12H7M13 12h3.500",
  share: "M10 12.500V3.500M6.800 6.500 10 3.300l3.200 3.200M4.500 11v5.500h11V11",
  copy: "M7 7h9v9H7zM4 13V4h9",
  close: "m5.500 5.500 9 9M14.500 5.500l-9 9",
  settings: "M4 6h7M15 6h1M4 14h1M9 14h7M11 6a2 2 0 1 0 4 0 2 2 0 1 0-4 0M5 14a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
  inspector: "M3.500 4h13v12h-13zM12 4v12",
  flag: "M5 17V3.500h9l-2 3 2 3H5",
};

export function Icon(props: { name: string; size?: number }) {
  const size = props.size ?? 20;
  return (
    <svg width={size} height={size} viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[props.name] ?? PATHS["tables"]} />
    </svg>
  );
}

export const hasIcon = (name: string) => name in PATHS;

export function Logo() {
  return (
    <svg width="24" height="24" viewBox="0 0 24 24" role="img" aria-label="etwhy">
      <path d="M3 4.500h5.200l3.800 7 3.800-7H21M12 11.500V16" fill="none" stroke="currentColor" stroke-width="2.200" stroke-linejoin="round" stroke-linecap="round" />
      <circle cx="12" cy="20" r="1.600" fill="currentColor" />
    </svg>
  );
}

/** A severity: diamond, triangle, ring, dot. */
export function Severity(props: { name: string; size?: number }) {
  const size = props.size ?? 16;
  const cut = { stroke: "var(--surface)", "stroke-width": "1.600", "stroke-linecap": "round" } as const;
  return (
    <svg class={`severity ${props.name}`} width={size} height={size} viewBox="0 0 16 16" role="img" aria-label={props.name}>
      {props.name === "critical" && (
        <>
          <path d="M8 1.500 14.500 8 8 14.500 1.500 8z" fill="currentColor" />
          <path d="M8 4.800v3.800M8 10.900v.1" {...cut} />
        </>
      )}
      {props.name === "warning" && (
        <>
          <path d="M8 1.800 15 14H1z" fill="currentColor" stroke="currentColor" stroke-linejoin="round" />
          <path d="M8 6v3.400M8 11.700v.1" {...cut} />
        </>
      )}
      {props.name === "notice" && (
        <>
          <circle cx="8" cy="8" r="6.200" fill="none" stroke="currentColor" stroke-width="1.500" />
          <path d="M8 5v3.400M8 10.800v.1" stroke="currentColor" stroke-width="1.500" stroke-linecap="round" />
        </>
      )}
      {!["critical", "warning", "notice"].includes(props.name) && <circle cx="8" cy="8" r="3" fill="currentColor" />}
    </svg>
  );
}
