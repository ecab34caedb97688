/**
 * The kernel view: the body, the IR behind each pass and the CUDA text beside each other. The line under the pointer, or the one that the
 * arrow keys choose, lights the lines of the other texts that speak of the same values.
 */
import type { ExplorerData, KernelView } from '../model.js'
import { type Code, codeOf } from './code.js'
import { el, tableOf } from './dom.js'
import { percent } from './format.js'

const none: ReadonlySet<string> = new Set()

/** Lights what belongs to a line: lines that give the same values, or, where it gives none, lines that speak of all that it does. */
class Linked {
  private readonly texts = new Map<string, Code>()
  private readonly owners: ReadonlyMap<string, string>
  private at: { readonly text: string; readonly line: number } | undefined

  /** @param owners what values that the compiler names itself were made for */
  constructor(owners: ReadonlyMap<string, string>) {
    this.owners = owners
  }

  set(name: string, code: Code): void {
    this.texts.set(name, code)
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

  clear(): void {
    this.at = undefined
    for (const { lines } of this.texts.values()) for (const line of lines) line.classList.remove('at', 'kin')
  }

  light(name: string, line: number): void {
    this.clear()
    this.at = { text: name, line }
    const own = this.texts.get(name)
    const [defined, mentioned] = [own?.defines[line] ?? none, own?.mentions[line] ?? none]
    own?.lines[line]?.classList.add('at')
    const made = new Set([...defined].map((value) => this.owners.get(value) ?? value))
    for (const [other, code] of this.texts) {
      if (other === name) continue
      const kin = code.lines.filter((_, i) => {
        const [gives, speaks] = [code.defines[i] ?? none, code.mentions[i] ?? none]
        if (defined.size > 0) return [...gives].some((value) => made.has(this.owners.get(value) ?? value))
        return mentioned.size > 0 && [...mentioned].every((value) => speaks.has(value))
      })
      for (const each of kin) each.classList.add('kin')
      scrollTo(code, kin[0])
    }
  }
}

/**
 * What values that the compiler names itself were made for: `sum0` of `const mean = sum(..) / n` for `mean`. They are those that the body
 * does not speak of, and the statement that reads them tells. Nothing of a derived kernel, whose body is that of one op of several.
 */
function ownersOf({ key, stages, body }: KernelView, names: ReadonlySet<string>): ReadonlyMap<string, string> {
  const owners = new Map<string, string>()
  if (!body.includes(`op('${key.replace(/__.*$/, '')}'`)) return owners
  const written = new Set(codeOf('', body, names).mentions.flatMap((each) => [...each]))
  const { defines, mentions } = codeOf('', stages[0]?.text ?? '', names)
  // The last statement first, so that what a made value was made of finds the same owner.
  for (let i = defines.length - 1; i >= 0; i--) {
    const [value] = defines[i] ?? none
    if (value === undefined) continue
    for (const read of mentions[i] ?? none) if (!written.has(read) && read !== value) owners.set(read, owners.get(value) ?? value)
  }
  return owners
}

/** Brings the first lit line into its own pane, and leaves the page where it is. */
function scrollTo({ element }: Code, line: HTMLElement | undefined): void {
  if (line === undefined) return
  const [top, bottom] = [line.offsetTop - element.offsetTop, line.offsetTop - element.offsetTop + line.offsetHeight]
  const [from, to] = [element.scrollTop, element.scrollTop + element.clientHeight]
  if (top < from || bottom > to) element.scrollTop = Math.max(0, top - element.clientHeight / 3)
}

const pane = (title: string, about: HTMLElement | string, code: HTMLElement, kind = ''): HTMLElement =>
  el('div', { class: `pane ${kind}` }, el('div', { class: 'about' }, el('h3', {}, title), about), code)

/** Marks what a pass has changed: lines that the stage before does not have. */
function markChanges(code: Code, text: string, before: string | undefined): void {
  if (before === undefined) return
  const known = new Set(before.split('\n').map((line) => line.trim()))
  for (const [i, line] of text.trimEnd().split('\n').entries())
    if (line.trim() !== '' && !known.has(line.trim())) code.lines[i]?.classList.add('changed')
}

/** The IR with a slider over the passes. */
function passes({ stages }: KernelView, names: ReadonlySet<string>, linked: Linked): HTMLElement {
  const title = el('span', { 'aria-live': 'polite' })
  const slider = el('input', { type: 'range', min: 0, max: stages.length - 1, value: 0, 'aria-label': 'pass' })
  const holder = el('div')
  const show = (at: number): void => {
    const stage = stages[at]
    if (stage === undefined) return
    const code = codeOf(`IR, ${stage.pass}`, stage.text, names)
    // Stages that keep rows and stages that read them again are two roads from the same kernel: each is held against its own.
    const way = /rows (kept|read again)$/.exec(stage.pass)?.[0]
    const before = stages.slice(0, at).findLast(({ pass }) => way === undefined || !/rows /.test(pass) || pass.endsWith(way))
    markChanges(code, stage.text, before?.text)
    linked.set('ir', code)
    holder.replaceChildren(code.element)
    title.textContent = `${at + 1} of ${stages.length}: ${stage.pass}`
    slider.setAttribute('aria-valuetext', stage.pass)
  }
  slider.addEventListener('input', () => show(Number(slider.value)))
  show(0)
  const note = stages.length > 1 ? ' Lines with a green edge are new.' : ''
  const about = stages.length > 1 ? el('div', { class: 'slider' }, slider, title, el('span', { class: 'quiet' }, note)) : title
  return pane('IR', about, holder)
}

/** Where numbers of the compiler come from. */
const origins: Readonly<Record<KernelView['resourcesFrom']['from'], string>> = {
  record: 'As recorded beside the text',
  build: 'As the last build for CUDA reported',
  nvcc: 'As nvcc says on this machine',
  unknown: 'Unknown',
}

function resources({ resources: found, resourcesFrom: { from, detail, dynamicShared } }: KernelView): HTMLElement {
  const origin = el('p', { class: 'origin' }, `${origins[from]}: ${detail}.`)
  if (found.length === 0) return origin
  const columns = [
    'kernel',
    'arch',
    'threads',
    'registers',
    'shared bytes',
    'stack bytes',
    'spilled bytes',
    'blocks at once',
    'occupancy',
  ]
  const upTo = dynamicShared ? '≤ ' : ''
  const rows = found.map(({ occupancy, ...each }) => [
    each.kernel,
    each.arch,
    each.threads === undefined ? 'unknown' : String(each.threads),
    String(each.registers),
    String(each.sharedBytes),
    String(each.stackBytes),
    String(each.spillBytes),
    occupancy === undefined ? 'unknown' : `${upTo}${occupancy.blocks}`,
    occupancy === undefined ? 'unknown' : `${upTo}${percent(occupancy.share)}, by ${occupancy.limitedBy.join(' and ')}`,
  ])
  const dynamic =
    'Its launches give blocks dynamic shared memory besides, by their sizes, so that fewer of them may have room at once.'
  return el('div', {}, origin, tableOf('resources', columns, rows), dynamicShared ? el('p', {}, dynamic) : '')
}

function notesOf({ notes }: KernelView): HTMLElement[] {
  return notes.length === 0 ? [] : [el('ul', { class: 'notes' }, ...notes.map((note) => el('li', {}, note)))]
}

function schedules({ schedules: found }: KernelView): HTMLElement[] {
  if (found.length === 0) return []
  const items = found.map(({ kernel, schedule, when }) =>
    el('li', {}, el('code', {}, kernel), `: ${schedule}`, el('span', { class: 'quiet' }, ` (${when})`)),
  )
  return [el('h2', {}, 'Schedules'), el('ul', {}, ...items)]
}

function oneKernel(kernel: KernelView): HTMLElement {
  const names = new Set(kernel.names)
  const linked = new Linked(ownersOf(kernel, names))
  const cuda = codeOf('CUDA text', kernel.cuda.text, names)
  linked.set('cuda', cuda)
  const ir = passes(kernel, names, linked)
  const left: HTMLElement[] = [ir]
  if (kernel.body !== '') {
    const body = codeOf('body', kernel.body, names)
    linked.set('body', body)
    left.unshift(pane('Body', el('code', { class: 'quiet' }, kernel.source), body.element))
  }
  const file = el('code', { class: 'quiet' }, kernel.cuda.file)
  return el(
    'div',
    {},
    el('h2', {}, kernel.key),
    el(
      'p',
      {},
      'The line under the pointer lights the lines of the other texts that give the same values, by their names. Within a text, arrow keys choose a line.',
    ),
    ...notesOf(kernel),
    el('div', { class: 'panes' }, el('div', { class: 'left' }, ...left), pane('CUDA', file, cuda.element, 'tall')),
    ...schedules(kernel),
    el('h2', {}, 'Registers and memory'),
    resources(kernel),
  )
}

/** @param chosen the kernel to begin with; the first where undefined */
export function kernelSection({ kernels }: ExplorerData, chosen: string | undefined): HTMLElement {
  const first = kernels.find(({ key }) => key === chosen) ?? kernels[0]
  const holder = el('div')
  if (first !== undefined) holder.append(oneKernel(first))
  if (kernels.length < 2) return holder
  const options = kernels.map(({ key }) => el('option', { value: key, selected: key === first?.key }, key))
  const choice = el('select', { class: 'button', id: 'kernel' }, ...options)
  choice.addEventListener('change', () => {
    const next = kernels.find(({ key }) => key === choice.value)
    if (next !== undefined) holder.replaceChildren(oneKernel(next))
  })
  return el('div', {}, el('div', { class: 'row' }, el('label', { for: 'kernel' }, 'Kernel'), choice), holder)
}
