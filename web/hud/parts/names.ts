/** Titles and tables of panels, for parts that name panels without being one. */

const TITLES: Record<string, string> = {};
const TABLES: Record<string, string[]> = {};

/** Panels tell them here. */
export function nameOfPanel(id: string, title?: string, tables?: string[]): string {
  if (title) TITLES[id] = title;
  if (tables) TABLES[id] = tables;
  return TITLES[id] ?? id;
}

export const tablesOfPanel = (id: string): string[] => TABLES[id] ?? [];
