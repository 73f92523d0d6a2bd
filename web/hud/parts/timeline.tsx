/** The timeline above all panels. */

export function Timeline() {
  return <div class="timeline" role="group" aria-label="Timeline" />;
}
