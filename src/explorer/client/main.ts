/**
 * Entry point of the page: reads the embedded data, and shows one view at a time under tabs, selected by address or keyboard. A live page is drawn again
 * when its data changes, with the same view, kernel and place.
 */
import type { ExplorerData, View } from '../model.js'
import { benchSection } from './bench.js'
import { el } from './dom.js'
import { generationSection } from './generation.js'
import { historySection } from './history.js'
import { kernelSection } from './kernel.js'
import { follow } from './live.js'
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

/** Choices of the reader that last when the page is drawn again. */
interface Chosen {
  view: View | undefined
  kernel: string | undefined
}

function sectionOf(view: View, data: ExplorerData, chosen: Chosen, show: (view: View) => void): HTMLElement {
  switch (view) {
    case 'plan': {
      const open = (key: string): void => {
        chosen.kernel = key
        show('kernel')
      }
      return data.plan === undefined ? el('div') : planSection(data.plan, data, open)
    }
    case 'kernel':
      return kernelSection(data, chosen.kernel, (key) => {
        chosen.kernel = key
      })
    case 'bench':
      return data.bench === undefined ? el('div') : benchSection(data.bench)
    case 'generation':
      return generationSection(data.timelines)
    case 'history':
      return historySection(data.history ?? [])
  }
}

/** Moves the focus along the tabs with the arrow keys. */
function withArrows(list: HTMLElement, buttons: ReadonlyMap<View, HTMLElement>, show: (view: View) => void): void {
  const views = [...buttons.keys()]
  list.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    const now = views.findIndex((view) => buttons.get(view) === document.activeElement)
    const next = views[(now + step + views.length) % views.length]
    if (step === 0 || now < 0 || next === undefined) return
    event.preventDefault()
    show(next)
    buttons.get(next)?.focus()
  })
}

/** Draws the tabs and the chosen view; returns the tabs. */
function draw(data: ExplorerData, chosen: Chosen, tabs: HTMLElement, main: HTMLElement): HTMLElement {
  const views = viewsOf(data)
  const list = el('div', { role: 'tablist', 'aria-label': 'views', id: 'tabs' })
  const buttons = new Map(
    views.map((view) => {
      const button = el('button', { type: 'button', role: 'tab', id: `tab-${view}`, 'aria-controls': 'view' }, titles[view])
      button.addEventListener('click', () => show(view))
      return [view, button]
    }),
  )
  list.append(...buttons.values())
  tabs.replaceWith(views.length === 0 ? el('div', { id: 'tabs' }) : list)

  function show(view: View): void {
    chosen.view = view
    for (const [each, button] of buttons) {
      button.setAttribute('aria-selected', String(each === view))
      button.tabIndex = each === view ? 0 : -1
    }
    main.setAttribute('role', 'tabpanel')
    main.setAttribute('aria-labelledby', `tab-${view}`)
    main.replaceChildren(sectionOf(view, data, chosen, show))
    history.replaceState(null, '', `#${view}`)
  }
  withArrows(list, buttons, show)
  const named = (): View | undefined => views.find((view) => `#${view}` === location.hash)
  window.onhashchange = (): void => {
    const view = named()
    if (view !== undefined) show(view)
  }
  const first = views.find((view) => view === chosen.view) ?? named() ?? views.find((view) => view === data.opens) ?? views[0]
  if (first !== undefined) show(first)
  return list
}

/** Draws other data in place of the first, where the reader is. */
function redraw(data: ExplorerData, chosen: Chosen, main: HTMLElement): void {
  const [title, command, tabs] = ['title', 'command', 'tabs'].map((id) => document.getElementById(id))
  if (title != null) title.textContent = data.title
  if (command != null) command.textContent = data.command
  document.title = data.title
  const { scrollX, scrollY } = window
  if (tabs != null) draw(data, chosen, tabs, main)
  window.scrollTo(scrollX, scrollY)
}

function start(data: ExplorerData, tabs: HTMLElement, main: HTMLElement): void {
  const chosen: Chosen = { view: undefined, kernel: undefined }
  draw(data, chosen, tabs, main)
  const status = document.getElementById('live')
  if (data.live !== undefined && status !== null) follow(data.live, status, (next) => redraw(next, chosen, main))
}

const [tabs, main, source] = ['tabs', 'view', 'data'].map((id) => document.getElementById(id))
if (tabs != null && main != null && source?.textContent != null) start(JSON.parse(source.textContent), tabs, main)
