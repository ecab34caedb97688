/**
 * Lines that belong together, in all texts of a kernel. A line knows the lines of specs that it was made of; of machine code, the lines of
 * CUDA text as well. Where that is not known of a line, such as the declaration of a tensor, the names of its values tell.
 */
import type { Code } from './code.js'

/** A text on the page. */
export interface LinkedText {
  readonly code: Code
  /** By line: the lines of specs that it was made of, as `file:line`; of a spec's own text, where the line stands. */
  readonly places: readonly ReadonlySet<string>[]
  /** By line of machine code: lines of the CUDA text, from 1. */
  readonly lines?: readonly (readonly number[])[] | undefined
  readonly kind: 'spec' | 'IR' | 'CUDA' | 'SASS'
}

const none: ReadonlySet<string> = new Set()

const isWithin = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => [...a].every((place) => b.has(place))

/** True if lines were made of the same: one of all that the other was, and nothing of nothing. */
const areKin = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size > 0 && b.size > 0 && (isWithin(a, b) || isWithin(b, a))

/** Lights what belongs to the line under the pointer, or to the one that the arrow keys choose. */
export class Linked {
  private readonly texts = new Map<string, LinkedText>()
  private readonly owners: ReadonlyMap<string, string>
  private at: { readonly text: string; readonly line: number } | undefined

  /** @param owners what values that the compiler names itself were made for */
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

  /** Which lines of another text belong to a line. */
  private rule(own: LinkedText, line: number, other: LinkedText): (at: number) => boolean {
    if (own.kind === 'CUDA' && other.lines !== undefined) return (at) => other.lines?.[at]?.includes(line + 1) === true
    if (own.lines !== undefined && other.kind === 'CUDA') {
      const made = own.lines[line] ?? []
      return (at) => made.includes(at + 1)
    }
    const places = this.madeOf(own, line)
    if (places.size === 0 || other.places.every(({ size }) => size === 0)) return this.byNames(own, line, other)
    return (at) => areKin(places, other.places[at] ?? none)
  }

  /** What a line was made of. A line of a spec is a place only where something was made of it. */
  private madeOf({ kind, places }: LinkedText, line: number): ReadonlySet<string> {
    const own = places[line] ?? none
    if (kind !== 'spec') return own
    const isUsed = [...this.texts.values()].some(
      (text) => text.kind !== 'spec' && text.places.some((made) => [...own].some((place) => made.has(place))),
    )
    return isUsed ? own : none
  }

  /** Lines that give the same values, or, where a line gives none, lines that speak of all that it does. */
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

/** Brings the first lit line into its own pane, and leaves the page where it is. */
function scrollTo({ element }: Code, line: HTMLElement | undefined): void {
  if (line === undefined) return
  const [top, bottom] = [line.offsetTop - element.offsetTop, line.offsetTop - element.offsetTop + line.offsetHeight]
  const [from, to] = [element.scrollTop, element.scrollTop + element.clientHeight]
  if (top < from || bottom > to) element.scrollTop = Math.max(0, top - element.clientHeight / 3)
}
