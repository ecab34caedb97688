/**
 * Linked highlighting of lines in all texts of a kernel. A line has the spec lines that it was compiled from; a line of machine code also
 * has lines of CUDA source. Lines without them, such as declarations of tensors, are linked by the names of their values.
 */
import type { Code } from './code.js'

/** A text on the page. */
export interface LinkedText {
  readonly code: Code
  /** Per line: the spec lines that it was compiled from, as `file:line`; for a spec's own text, its location. */
  readonly places: readonly ReadonlySet<string>[]
  /** Per line of machine code: lines of the CUDA source, from 1. */
  readonly lines?: readonly (readonly number[])[] | undefined
  readonly kind: 'spec' | 'IR' | 'CUDA' | 'SASS'
}

const none: ReadonlySet<string> = new Set()

const isWithin = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => [...a].every((place) => b.has(place))

/** True if two lines come from the same source lines: one set contains the other, and neither is empty. */
const areLinked = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size > 0 && b.size > 0 && (isWithin(a, b) || isWithin(b, a))

/** Highlights lines linked to the line under the pointer, or to the one selected by arrow keys. */
export class Linked {
  private readonly texts = new Map<string, LinkedText>()
  private readonly owners: ReadonlyMap<string, string>
  private at: { readonly text: string; readonly line: number } | undefined

  /** @param owners of values that the compiler names itself */
  constructor(owners: ReadonlyMap<string, string>) {
    this.owners = owners
  }

  set(name: string, text: LinkedText): void {
    const { code } = text
    this.texts.set(name, text)
    for (const [i, line] of code.lines.entries()) line.addEventListener('pointerenter', () => this.light(name, i))
    code.element.addEventListener('pointerleave', () => this.clear())
    code.element.addEventListener('keydown', (event) => this.move(event, name, code))
    code.element.addEventListener('blur', () => this.clear())
  }

  private move(event: KeyboardEvent, name: string, code: Code): void {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (step === 0) return
    event.preventDefault()
    const now = this.at?.text === name ? this.at.line + step : 0
    const line = Math.min(Math.max(now, 0), code.lines.length - 1)
    this.light(name, line)
    code.lines[line]?.scrollIntoView({ block: 'nearest' })
  }

  private clear(): void {
    this.at = undefined
    for (const { code } of this.texts.values()) for (const line of code.lines) line.classList.remove('at', 'kin')
  }

  private light(name: string, line: number): void {
    this.clear()
    this.at = { text: name, line }
    const own = this.texts.get(name)
    if (own === undefined) return
    own.code.lines[line]?.classList.add('at')
    for (const [other, text] of this.texts) {
      if (other === name) continue
      const isKin = this.rule(own, line, text)
      const kin = text.code.lines.filter((_, i) => isKin(i))
      for (const each of kin) each.classList.add('kin')
      scrollTo(text.code, kin[0])
    }
  }

  /** Predicate for lines of another text that are linked to a line. */
  private rule(own: LinkedText, line: number, other: LinkedText): (at: number) => boolean {
    if (own.kind === 'CUDA' && other.lines !== undefined) return (at) => other.lines?.[at]?.includes(line + 1) === true
    if (own.lines !== undefined && other.kind === 'CUDA') {
      const made = own.lines[line] ?? []
      return (at) => made.includes(at + 1)
    }
    const places = this.madeOf(own, line)
    if (places.size === 0 || other.places.every(({ size }) => size === 0)) return this.byNames(own, line, other)
    return (at) => areLinked(places, other.places[at] ?? none)
  }

  /** Source locations of a line. A spec line counts as a location only if some other text was compiled from it. */
  private madeOf({ kind, places }: LinkedText, line: number): ReadonlySet<string> {
    const own = places[line] ?? none
    if (kind !== 'spec') return own
    const isUsed = [...this.texts.values()].some(
      (text) => text.kind !== 'spec' && text.places.some((made) => [...own].some((place) => made.has(place))),
    )
    return isUsed ? own : none
  }

  /** Predicate for lines that define the same values, or, for a line without definitions, mention all of its names. */
  private byNames({ code }: LinkedText, line: number, { code: other }: LinkedText): (at: number) => boolean {
    const [defined, mentioned] = [code.defines[line] ?? none, code.mentions[line] ?? none]
    const made = new Set([...defined].map((value) => this.owners.get(value) ?? value))
    return (at) => {
      const [gives, speaks] = [other.defines[at] ?? none, other.mentions[at] ?? none]
      if (defined.size > 0) return [...gives].some((value) => made.has(this.owners.get(value) ?? value))
      return mentioned.size > 0 && [...mentioned].every((value) => speaks.has(value))
    }
  }
}

/** Scrolls the first highlighted line into view within its pane, without scrolling the page. */
function scrollTo({ element }: Code, line: HTMLElement | undefined): void {
  if (line === undefined) return
  const [top, bottom] = [line.offsetTop - element.offsetTop, line.offsetTop - element.offsetTop + line.offsetHeight]
  const [from, to] = [element.scrollTop, element.scrollTop + element.clientHeight]
  if (top < from || bottom > to) element.scrollTop = Math.max(0, top - element.clientHeight / 3)
}
