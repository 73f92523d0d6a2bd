/** Where something will stand while it is being added up. */

export function Bones(props: { lines: number }) {
  return (
    <div class="bones" aria-hidden="true">
      {Array.from({ length: props.lines }, (_, at) => (
        <i key={at} />
      ))}
    </div>
  );
}
