/** Charts by Observable Plot, redrawn when the width changes. Colours are variables of the style sheet. */
import * as Plot from '@observablehq/plot'
import { el } from './dom.js'

/** Width of a text in the charts' font. */
const pen = document.createElement('canvas').getContext('2d')
export function textWidth(text: string): number {
  if (pen === null) return 8 * text.length
  pen.font = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
  return pen.measureText(text).width
}

const common: Plot.PlotOptions = { style: { fontSize: '12px', fontFamily: 'inherit', background: 'none' } }

/** @param label text alternative of the chart */
export function chart(label: string, options: (width: number) => Plot.PlotOptions): HTMLElement {
  const holder = el('div', { class: 'chart' })
  let drawn = 0
  const draw = (): void => {
    const width = Math.floor(holder.clientWidth)
    if (width === 0 || width === drawn) return
    drawn = width
    const figure = Plot.plot({ ...common, ...options(width), width })
    figure.setAttribute('role', 'img')
    figure.setAttribute('aria-label', label)
    // An image has no named parts.
    for (const part of figure.querySelectorAll('g')) part.removeAttribute('aria-label')
    holder.replaceChildren(figure)
    separate(figure)
  }
  new ResizeObserver(draw).observe(holder)
  return holder
}

/** Class of labels that move down until they overlap no other text. */
export const tag = 'tag'

function separate(figure: Element): void {
  const taken = [...figure.querySelectorAll(`text`)].filter((text) => text.closest(`.${tag}`) === null)
  const placed = taken.map((text) => text.getBoundingClientRect())
  for (const text of figure.querySelectorAll<SVGTextElement>(`.${tag} text`)) {
    const { left, right, top, bottom } = text.getBoundingClientRect()
    let down = 0
    const overlaps = ({ left: l, right: r, top: t, bottom: b }: DOMRect): boolean =>
      Math.min(right, r) > Math.max(left, l) && Math.min(bottom + down, b) > Math.max(top + down, t)
    while (placed.some(overlaps)) down += 2
    text.style.translate = `0 ${down}px`
    placed.push(new DOMRect(left, top + down, right - left, bottom - top))
  }
}

/** Left margin for names: the width of the longest one, at most half of the chart. */
export const marginFor = (names: readonly string[], width: number): number =>
  Math.min(Math.ceil(Math.max(...names.map(textWidth))) + 14, Math.floor(width / 2))

/** Truncates a name with an ellipsis to fit a width. */
export function fitted(name: string, space: number): string {
  if (textWidth(name) <= space) return name
  let length = name.length
  while (length > 1 && textWidth(`${name.slice(0, length)}…`) > space) length--
  return `${name.slice(0, length)}…`
}

export { Plot }
