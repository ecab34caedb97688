/**
 * Kernel view: the body, the IR after each pass, the CUDA source and its machine code side by side. The line under the pointer, or the one
 * selected by arrow keys, highlights lines of the other texts that come from the same lines of the spec.
 */
import type { ExplorerData, KernelView } from '../model.js'
import { type Code, codeOf } from './code.js'
import { el, tableOf } from './dom.js'
import { percent } from './format.js'
import { Linked, type LinkedText } from './linked.js'

const none: ReadonlySet<string> = new Set()

/**
 * Owners of values that the compiler names itself: `sum0` in `const mean = sum(..) / n` belongs to `mean`. They are values that the body
 * does not mention; their owner is the statement that reads them. Empty for a derived kernel, whose body is that of one of several ops.
 */
function ownersOf({ key, stages, body }: KernelView, names: ReadonlySet<string>): ReadonlyMap<string, string> {
  const owners = new Map<string, string>()
  if (!body.includes(`op('${key.replace(/__.*$/, '')}'`)) return owners
  const written = new Set(codeOf('', body, names).mentions.flatMap((each) => [...each]))
  const { defines, mentions } = codeOf('', stages[0]?.text ?? '', names)
  // Starts at the last statement, so that operands of a compiler-made value get the same owner.
  for (let i = defines.length - 1; i >= 0; i--) {
    const [value] = defines[i] ?? none
    if (value === undefined) continue
    for (const read of mentions[i] ?? none) if (!written.has(read) && read !== value) owners.set(read, owners.get(value) ?? value)
  }
  return owners
}

const pane = (title: string, about: HTMLElement | string, code: HTMLElement, kind = ''): HTMLElement =>
  el('div', { class: `pane ${kind}` }, el('div', { class: 'about' }, el('h3', {}, title), about), code)

/** Marks lines changed by a pass: those that the previous stage does not have. */
function markChanges(code: Code, text: string, before: string | undefined): void {
  if (before === undefined) return
  const known = new Set(before.split('\n').map((line) => line.trim()))
  for (const [i, line] of text.trimEnd().split('\n').entries())
    if (line.trim() !== '' && !known.has(line.trim())) code.lines[i]?.classList.add('changed')
}

/** Passes that the reader chose, by kernel: a page that is drawn again shows the same. */
const chosenPass = new Map<string, string>()

/** The IR with a slider over the passes. */
function passes({ key, stages }: KernelView, names: ReadonlySet<string>, linked: Linked): HTMLElement {
  const title = el('span', { 'aria-live': 'polite' })
  const slider = el('input', { type: 'range', min: 0, max: stages.length - 1, value: 0, 'aria-label': 'pass' })
  const holder = el('div')
  const show = (at: number): void => {
    const stage = stages[at]
    if (stage === undefined) return
    const code = codeOf(`IR, ${stage.pass}`, stage.text, names)
    // Register-resident and multi-pass variants branch from the same kernel: each stage is compared with the previous one of its variant.
    const variant = /rows (kept|read again)$/.exec(stage.pass)?.[0]
    const before = stages
      .slice(0, at)
      .findLast(({ pass }) => variant === undefined || !/rows /.test(pass) || pass.endsWith(variant))
    markChanges(code, stage.text, before?.text)
    linked.set('ir', { code, places: asSets(stage.places), kind: 'IR' })
    holder.replaceChildren(code.element)
    title.textContent = `${at + 1} of ${stages.length}: ${stage.pass}`
    slider.setAttribute('aria-valuetext', stage.pass)
  }
  slider.addEventListener('input', () => {
    chosenPass.set(key, stages[Number(slider.value)]?.pass ?? '')
    show(Number(slider.value))
  })
  const first = Math.max(
    0,
    stages.findIndex(({ pass }) => pass === chosenPass.get(key)),
  )
  slider.value = String(first)
  show(first)
  const note = stages.length > 1 ? ' Lines with a green edge are new.' : ''
  const about = stages.length > 1 ? el('div', { class: 'slider' }, slider, title, el('span', { class: 'quiet' }, note)) : title
  return pane('IR', about, holder)
}

/** Sources of compiler statistics. */
const origins: Readonly<Record<KernelView['resourcesFrom']['from'], string>> = {
  record: 'As recorded beside the source',
  build: 'As the last build for CUDA reported',
  nvcc: 'As reported by nvcc on this machine',
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
  const dynamic = 'Its launches also use dynamic shared memory, depending on their sizes, so fewer blocks may fit at once.'
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

const asSets = (places: readonly (readonly string[])[]): LinkedText['places'] => places.map((each) => new Set(each))

/** Pane with a spec text, whose lines are source locations. @param source `file:line` of its first line */
function specPane(title: string, text: string, source: string, names: ReadonlySet<string>, linked: Linked): HTMLElement {
  const code = codeOf(title === 'Body' ? 'body' : source, text, names)
  const [, file = '', first] = /^(.*):(\d+)$/.exec(source) ?? []
  const places = code.lines.map((_, at) => new Set([`${file}:${Number(first) + at}`]))
  linked.set(source, { code, places, kind: 'spec' })
  return pane(title, el('code', { class: 'quiet' }, source), code.element)
}

/** Panes of the CUDA source and of its machine code, if a disassembler is available. */
function machinePanes({ cuda, sass }: KernelView, names: ReadonlySet<string>, linked: Linked): HTMLElement[] {
  const places = asSets(cuda.places)
  const code = codeOf('CUDA source', cuda.text, names)
  linked.set('cuda', { code, places, kind: 'CUDA' })
  const ofText = pane('CUDA', el('code', { class: 'quiet' }, cuda.file), code.element, 'tall')
  if ('missing' in sass) return [ofText, el('p', { class: 'quiet' }, `No machine code is shown: ${sass.missing}.`)]
  const holder = el('div')
  const show = (at: number): void => {
    const { kernel, text, lines } = sass.kernels[at] ?? { kernel: '', text: '', lines: [] }
    const shown = codeOf(`SASS of ${kernel}`, text, none)
    const made = lines.map((of) => new Set(of.flatMap((line) => [...(places[line - 1] ?? none)])))
    linked.set('sass', { code: shown, places: made, lines, kind: 'SASS' })
    holder.replaceChildren(shown.element)
  }
  const options = sass.kernels.map(({ kernel }, at) => el('option', { value: at }, kernel))
  const choice = el('select', { class: 'button', 'aria-label': 'kernel of the machine code' }, ...options)
  choice.addEventListener('change', () => show(Number(choice.value)))
  show(0)
  return [ofText, pane('SASS', el('div', { class: 'row' }, choice, el('span', { class: 'quiet' }, sass.from)), holder)]
}

function oneKernel(kernel: KernelView): HTMLElement {
  const names = new Set(kernel.names)
  const linked = new Linked(ownersOf(kernel, names))
  const body = kernel.body === '' ? [] : [specPane('Body', kernel.body, kernel.source, names, linked)]
  const others = kernel.others.map(({ source, text }) => specPane('Also compiled from', text, source, names, linked))
  const ir = passes(kernel, names, linked)
  return el(
    'div',
    {},
    el('h2', {}, kernel.key),
    el(
      'p',
      {},
      'The line under the pointer highlights lines of the other texts that come from the same lines of the spec. Within a text, arrow keys select a line.',
    ),
    ...notesOf(kernel),
    el(
      'div',
      { class: 'panes' },
      el('div', { class: 'left' }, ...body, ...others, ir),
      el('div', { class: 'right' }, ...machinePanes(kernel, names, linked)),
    ),
    ...schedules(kernel),
    el('h2', {}, 'Registers and memory'),
    resources(kernel),
  )
}

/** @param chosen initial kernel; default: the first @param onChoice called with another that the reader chooses */
export function kernelSection(
  { kernels }: ExplorerData,
  chosen: string | undefined,
  onChoice: (key: string) => void,
): HTMLElement {
  const first = kernels.find(({ key }) => key === chosen) ?? kernels[0]
  const holder = el('div')
  if (first !== undefined) holder.append(oneKernel(first))
  if (kernels.length < 2) return holder
  const options = kernels.map(({ key }) => el('option', { value: key, selected: key === first?.key }, key))
  const choice = el('select', { class: 'button', id: 'kernel' }, ...options)
  choice.addEventListener('change', () => {
    const next = kernels.find(({ key }) => key === choice.value)
    if (next === undefined) return
    onChoice(next.key)
    holder.replaceChildren(oneKernel(next))
  })
  return el('div', {}, el('div', { class: 'row' }, el('label', { for: 'kernel' }, 'Kernel'), choice), holder)
}
