/** Constructors of elements. Text is only ever set as text, never as HTML. */

type Child = Node | string
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

function fill<E extends Element>(element: E, attributes: Attributes, children: readonly Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    element.setAttribute(name, value === true ? '' : String(value))
  }
  element.append(...children)
  return element
}

export const el = <K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] => fill(document.createElement(name), attributes, children)

export const svg = <K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] => fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children)

/** Region with its own horizontal scrolling, also from the keyboard, so that the page never scrolls sideways. */
export const scrolling = (label: string, ...children: readonly Child[]): HTMLElement =>
  el('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': label }, ...children)

export function tableOf(title: string, columns: readonly string[], rows: readonly (readonly Child[])[]): HTMLElement {
  const head = el('tr', {}, ...columns.map((column) => el('th', { scope: 'col' }, column)))
  const body = rows.map((cells) => el('tr', {}, ...cells.map((cell) => el('td', {}, cell))))
  return scrolling(title, el('table', {}, el('thead', {}, head), el('tbody', {}, ...body)))
}

export const legend = (entries: readonly { readonly name: string; readonly color: string }[]): HTMLElement =>
  el('ul', { class: 'legend' }, ...entries.map(({ name, color }) => el('li', {}, swatch(color), name)))

const swatch = (color: string): HTMLElement =>
  el('span', { class: 'swatch', style: `background:${color}`, 'aria-hidden': 'true' })

/** Facts as a list of names and values. */
export const factList = (facts: readonly { readonly name: string; readonly value: string }[]): HTMLElement =>
  el('dl', {}, ...facts.flatMap(({ name, value }) => [el('dt', {}, name), el('dd', {}, value)]))
