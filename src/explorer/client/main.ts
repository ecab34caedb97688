/** Entry point of the page: reads the embedded data, and shows one view at a time under tabs, selected by address or keyboard. */
import type { ExplorerData, View } from '../model.js'
import { benchSection } from './bench.js'
import { el } from './dom.js'
import { generationSection } from './generation.js'
import { historySection } from './history.js'
import { kernelSection } from './kernel.js'
import { planSection } from './plan.js'

const titles: Readonly<Record<View, string>> = {
  plan: 'Plan',
  kernel: 'Kernel',
  bench: 'Bench',
  generation: 'Generation',
  history: 'History',
}

/** Views with data. */
function viewsOf({ plan, kernels, bench, timelines, history = [] }: ExplorerData): View[] {
  const found: View[] = []
  if (plan !== undefined) found.push('plan')
  if (kernels.length > 0) found.push('kernel')
  if (bench !== undefined) found.push('bench')
  if (timelines.length > 0) found.push('generation')
  if (history.length > 0) found.push('history')
  return found
}

function start(data: ExplorerData, tabs: HTMLElement, main: HTMLElement): void {
  const views = viewsOf(data)
  let chosenKernel: string | undefined
  const sections: Readonly<Record<View, () => HTMLElement>> = {
    plan: () => {
      const open = (key: string): void => {
        chosenKernel = key
        show('kernel')
      }
      return data.plan === undefined ? el('div') : planSection(data.plan, data, open)
    },
    kernel: () => kernelSection(data, chosenKernel),
    bench: () => (data.bench === undefined ? el('div') : benchSection(data.bench)),
    generation: () => generationSection(data.timelines),
    history: () => historySection(data.history ?? []),
  }
  const list = el('div', { role: 'tablist', 'aria-label': 'views' })
  const buttons = new Map(
    views.map((view) => {
      const button = el('button', { type: 'button', role: 'tab', id: `tab-${view}`, 'aria-controls': 'view' }, titles[view])
      button.addEventListener('click', () => show(view))
      return [view, button]
    }),
  )
  list.append(...buttons.values())
  tabs.replaceWith(list)
  main.setAttribute('role', 'tabpanel')

  function show(view: View): void {
    for (const [each, button] of buttons) {
      button.setAttribute('aria-selected', String(each === view))
      button.tabIndex = each === view ? 0 : -1
    }
    main.setAttribute('aria-labelledby', `tab-${view}`)
    main.replaceChildren(sections[view]())
    history.replaceState(null, '', `#${view}`)
  }
  list.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    const now = views.findIndex((view) => buttons.get(view) === document.activeElement)
    const next = views[(now + step + views.length) % views.length]
    if (step === 0 || now < 0 || next === undefined) return
    event.preventDefault()
    show(next)
    buttons.get(next)?.focus()
  })
  const named = (): View | undefined => views.find((view) => `#${view}` === location.hash)
  window.addEventListener('hashchange', () => {
    const view = named()
    if (view !== undefined) show(view)
  })
  const first = named() ?? views.find((view) => view === data.opens) ?? views[0]
  if (first !== undefined) show(first)
}

const [tabs, main, source] = ['tabs', 'view', 'data'].map((id) => document.getElementById(id))
if (tabs != null && main != null && source?.textContent != null) start(JSON.parse(source.textContent), tabs, main)
