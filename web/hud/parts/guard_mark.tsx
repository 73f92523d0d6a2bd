/** Marks security products: a letter, an outline and words, not the colour alone. */

export function GuardMark(props: { is: boolean }) {
  if (!props.is) return null;
  return (
    <abbr class="guard" title="security product" data-hint="Security product: it watches, scans or filters what others do.">
      S<span class="hidden-text"> (security product)</span>
    </abbr>
  );
}
