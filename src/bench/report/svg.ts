/**
 * SVG as text: the few elements the report's charts consist of. Everything that is not a number is escaped here, so that no name of
 * a plan or kernel can become markup. Colours are classes that the page's style sheet gives values for light and dark.
 */

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** Text for use between tags and in quoted attributes. */
export const escapeText = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character] ?? '')

/** An element as text. */
export type Svg = string

type Attributes = Readonly<Record<string, string | number>>

/** Coordinates to a hundredth of a pixel: enough for the eye, and equal input gives equal text. */
const value = (of: string | number): string => (typeof of === 'number' ? String(Math.round(of * 100) / 100) : escapeText(of))

/** An element with children that are elements already. */
export function element(name: string, attributes: Attributes, children: readonly Svg[] = []): Svg {
  const written = Object.entries(attributes).map(([key, of]) => ` ${key}="${value(of)}"`)
  return `<${name}${written.join('')}>${children.join('')}</${name}>`
}

/** Text at a point. `kind` is a class of the style sheet, `anchor` the side that stands at x. */
export const label = (
  x: number,
  y: number,
  text: string,
  { kind = 'label', anchor = 'start' }: { readonly kind?: string; readonly anchor?: 'start' | 'middle' | 'end' } = {},
): Svg => element('text', { x, y, class: kind, 'text-anchor': anchor }, [escapeText(text)])

export const line = (x1: number, y1: number, x2: number, y2: number, kind: string): Svg =>
  element('line', { x1, y1, x2, y2, class: kind })

/** A rectangle that shows `title` under the pointer. */
export const bar = (x: number, y: number, width: number, height: number, kind: string, title: string): Svg =>
  element('rect', { x, y, width, height, class: kind }, [element('title', {}, [escapeText(title)])])

/** A whole drawing. `summary` is what a screen reader says. */
export const drawing = (width: number, height: number, summary: string, children: readonly Svg[]): Svg =>
  element('svg', { viewBox: `0 0 ${value(width)} ${value(height)}`, width, height, role: 'img', 'aria-label': summary }, children)

/** The width that text of the charts' size takes at most, in pixels; there is no browser to ask. */
export const textWidth = (text: string): number => 6.6 * text.length

/** Text cut to a width, with an ellipsis; tooltips and tables have it in full. */
export function truncated(text: string, width: number): string {
  const most = Math.floor(width / textWidth('m'))
  return text.length <= most ? text : `${text.slice(0, Math.max(most - 1, 1))}…`
}
