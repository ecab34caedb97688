/** Plan view: plans side by side, with one box per step and its predicted time as a bar. A panel describes the selected box. */
import type { Box, DrawnPlan, ExplorerData, PlanView } from '../model.js'
import { kindColor } from './colors.js'
import { el, factList, legend, scrolling, svg } from './dom.js'
import { bytes, duration, microseconds, scaled } from './format.js'

type Edge = DrawnPlan['edges'][number]

interface Drawn {
  readonly plan: DrawnPlan
  readonly boxes: readonly HTMLButtonElement[]
  readonly edges: readonly SVGPathElement[]
}

const pathOf = ({ points }: Edge): string =>
  points.map(({ x, y }, i) => `${i === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('')

/** Arrow head at the end of a line. */
function arrowOf({ points }: Edge): SVGElement {
  const [before = { x: 0, y: 0 }, end = before] = points.slice(-2)
  const angle = (Math.atan2(end.y - before.y, end.x - before.x) * 180) / Math.PI
  const place = `translate(${end.x.toFixed(1)} ${end.y.toFixed(1)}) rotate(${angle.toFixed(1)})`
  return svg('path', { class: 'arrow', d: 'M0 0L-7 -3.5L-7 3.5Z', transform: place })
}

function boxOf(box: Box, most: number): HTMLButtonElement {
  const share = (value: number): string => `width:${Math.max(1, (100 * value) / most).toFixed(2)}%`
  const bar = el('i', { style: `${share(box.microseconds)};background:${kindColor(box.kind)}` })
  const measured = box.measured === undefined ? [] : [el('i', { class: 'measured', style: share(box.measured) })]
  const shown = box.nodes.length > 3 ? [...box.nodes.slice(0, 2), `and ${box.nodes.length - 2} more`] : box.nodes
  return el(
    'button',
    {
      type: 'button',
      class: 'box',
      'aria-pressed': 'false',
      style: `left:${box.x}px;top:${box.y}px;width:${box.width}px;height:${box.height}px`,
      title: `${box.kernel}: ${box.nodes.join(', ')}`,
    },
    el(
      'span',
      { class: 'head' },
      el('span', { class: 'name' }, box.kernel),
      el('span', { class: 'time' }, duration(box.microseconds)),
    ),
    el('span', { class: 'track' }, bar, ...measured),
    ...shown.map((node) => el('span', { class: 'nodes' }, node)),
  )
}

function draw(plan: DrawnPlan, most: number): Drawn & { readonly element: HTMLElement } {
  const edges = plan.edges.map((edge) => svg('path', { class: edge.legal ? 'edge legal' : 'edge', d: pathOf(edge) }))
  const lines = svg(
    'svg',
    { width: plan.width, height: plan.height, 'aria-hidden': 'true' },
    ...edges,
    ...plan.edges.map(arrowOf),
  )
  const boxes = plan.boxes.map((box) => boxOf(box, most))
  const drawing = el('div', { class: 'drawing', style: `width:${plan.width}px;height:${plan.height}px` }, lines, ...boxes)
  const totals = `${duration(plan.microseconds)} predicted, ${plan.launches} launches, ${bytes(plan.bytes)}`
  const element = el(
    'section',
    { class: 'plan', 'aria-label': `plan ${plan.name}` },
    el('h3', {}, plan.name),
    el('p', {}, totals),
    scrolling(`drawing of ${plan.name}`, drawing),
  )
  return { plan, boxes, edges, element }
}

/** Description of an edge, seen from the selected box. */
function verdictOf({ plan }: Drawn, edge: Edge, at: number): HTMLElement {
  const other = plan.boxes[edge.from === at ? edge.to : edge.from]?.kernel ?? ''
  const gain = edge.gain === undefined ? '' : ` One kernel would save ${microseconds(edge.gain)}.`
  const label = edge.from === at ? `${edge.producer} to ${other}` : `${other} to ${edge.consumer}`
  return el(
    'li',
    {},
    el('span', { class: edge.legal ? 'verdict legal' : 'verdict' }, label),
    ': ',
    `${edge.reason}.${gain}`.replace(/\.\./, '.'),
  )
}

function detailOf(drawn: Drawn, at: number, box: Box, openKernel: (() => HTMLElement) | undefined): HTMLElement[] {
  const { plan } = drawn
  const edges = plan.edges.filter(({ from, to }) => from === at || to === at)
  const rate = box.flops === 0 ? [] : [{ name: 'arithmetic', value: scaled(box.flops, 'FLOP') }]
  const measured = box.measured === undefined ? [] : [{ name: 'measured', value: `${duration(box.measured)} per launch` }]
  return [
    el('h3', {}, `${box.kernel} in ${plan.name}`),
    factList([
      { name: 'kind', value: box.kind },
      {
        name: 'predicted',
        value: `${duration(box.microseconds)}, ${((100 * box.microseconds) / plan.microseconds).toFixed(0)} % of the plan`,
      },
      ...measured,
      { name: 'bytes', value: `${bytes(box.bytes)}${box.rereads ? ', rows are read in every pass' : ''}` },
      ...rate,
      { name: 'nodes', value: box.nodes.join(', ') },
    ]),
    ...(openKernel === undefined ? [] : [openKernel()]),
    el('h3', {}, 'Why it ends here'),
    edges.length === 0
      ? el('p', {}, 'No other step reads its outputs or writes its inputs.')
      : el('ul', { class: 'plain' }, ...edges.map((edge) => verdictOf(drawn, edge, at))),
  ]
}

/** Button that opens a kernel of the page; undefined for a kernel that the page does not hold. */
const opener =
  ({ kernels }: ExplorerData, open: (key: string) => void) =>
  (name: string): (() => HTMLElement) | undefined => {
    const found = kernels.find(({ key }) => key === name || key.startsWith(`${name}__`))
    if (found === undefined) return undefined
    return () => {
      const button = el('button', { type: 'button', class: 'button' }, `Open ${found.key}`)
      button.addEventListener('click', () => open(found.key))
      return button
    }
  }

type Opener = ReturnType<typeof opener>

/** Marks a chosen box, its edges, and the boxes of other plans that compute the same nodes. */
function mark(drawn: readonly Drawn[], chosen: Drawn, at: number, box: Box): void {
  for (const each of drawn) {
    for (const [i, button] of each.boxes.entries()) {
      const other = each.plan.boxes[i]
      const isKin = each !== chosen && (other?.covers.some((node) => box.covers.includes(node)) ?? false)
      button.setAttribute('aria-pressed', String(each === chosen && i === at))
      button.classList.toggle('kin', isKin)
    }
    for (const [i, path] of each.edges.entries()) {
      const edge = each.plan.edges[i]
      path.classList.toggle('on', each === chosen && (edge?.from === at || edge?.to === at))
    }
  }
}

/** Plans side by side with the panel of the chosen step: at first the slowest one of the last plan. */
function sideBySide(plans: readonly DrawnPlan[], most: number, openKernel: Opener): HTMLElement {
  const drawn = plans.map((plan) => draw(plan, most))
  const detail = el('aside', { class: 'detail', 'aria-live': 'polite', 'aria-label': 'the chosen step' })
  const choose = (chosen: Drawn, at: number, box: Box): void => {
    mark(drawn, chosen, at, box)
    const open = openKernel(box.kernel)
    detail.replaceChildren(...detailOf(chosen, at, box, open))
  }
  for (const each of drawn)
    for (const [i, button] of each.boxes.entries()) {
      const box = each.plan.boxes[i]
      if (box !== undefined) button.addEventListener('click', () => choose(each, i, box))
    }
  const last = drawn.at(-1)
  const slowest = last?.plan.boxes.toSorted((a, b) => b.microseconds - a.microseconds)[0]
  if (last !== undefined && slowest !== undefined) choose(last, last.plan.boxes.indexOf(slowest), slowest)
  return el('div', { class: 'planview' }, el('div', { class: 'plans' }, ...drawn.map(({ element }) => element)), detail)
}

/** Choices of two of all plans; none if the page has no other than those it shows. */
function picker(view: PlanView, shown: readonly string[], show: (names: readonly string[]) => void): HTMLElement[] {
  if (view.plans.length <= shown.length) return []
  const choices = [shown[0], shown[1]].map((chosen, i) => {
    const options = view.plans.map(({ name, microseconds: time }) =>
      el('option', { value: name, selected: name === chosen }, `${name}, ${duration(time)}`),
    )
    const none = i === 1 ? [el('option', { value: '', selected: chosen === undefined }, 'no other')] : []
    const label = i === 0 ? 'plan' : 'plan beside it'
    return el('select', { class: 'button', 'aria-label': label }, ...none, ...options)
  })
  for (const choice of choices) {
    choice.addEventListener('change', () => {
      show([...new Set(choices.map(({ value }) => value).filter((name) => name !== ''))])
    })
  }
  return [el('div', { class: 'row' }, 'Plans', ...choices)]
}

/** @param open shows a kernel of the page, by the name of its op */
export function planSection(view: PlanView, data: ExplorerData, open: (key: string) => void): HTMLElement {
  const all = view.plans.flatMap(({ boxes }) => boxes)
  // One scale of bars for all plans.
  const most = Math.max(...all.map((box) => Math.max(box.microseconds, box.measured ?? 0)))
  const holder = el('div')
  const show = (names: readonly string[]): void => {
    const plans = names.flatMap((name) => view.plans.find((plan) => plan.name === name) ?? [])
    holder.replaceChildren(sideBySide(plans, most, opener(data, open)))
  }
  const shown = view.shown ?? view.plans.map(({ name }) => name)
  show(shown)
  const kinds = [...new Set(all.map(({ kind }) => kind))]
  const isMeasured = all.some(({ measured }) => measured !== undefined)
  return el(
    'div',
    {},
    el('h2', {}, view.graph),
    el(
      'p',
      {},
      `${view.setting}. Bars are predicted times${isMeasured ? '; the thin bar below is measured' : ''}. A dashed line could be fused, but the plan does not.`,
    ),
    ...picker(view, shown, show),
    legend(kinds.map((name) => ({ name, color: kindColor(name) }))),
    holder,
  )
}
