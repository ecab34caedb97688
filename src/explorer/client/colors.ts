/** Colours by meaning, as variables of the style sheet, so that themes change without redrawing. */

const byKind: Readonly<Record<string, string>> = {
  matmul: 'var(--hue1)',
  'grouped matmul': 'var(--hue1)',
  'library matmul': 'var(--hue9)',
  attention: 'var(--hue3)',
  'decode attention': 'var(--hue3)',
  'row program': 'var(--hue2)',
}

export const kindColor = (kind: string): string => byKind[kind] ?? 'var(--hue8)'

/** Number of distinguishable hues; further entries share a grey. */
export const hues = 12
export const hue = (i: number): string => (i < hues ? `var(--hue${i + 1})` : 'var(--rest)')
