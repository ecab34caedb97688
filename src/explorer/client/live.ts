/** Follows the server of a live page: shows what it is doing and the results of checks, and redraws the page when there is other data. */
import type { ExplorerData, LiveState } from '../model.js'
import { el } from './dom.js'

const titles: Readonly<Record<LiveState['state'] | 'lost', string>> = {
  working: 'Working',
  ready: 'Up to date',
  failed: 'Failed',
  lost: 'The server has ended',
}

function show(holder: HTMLElement, state: LiveState['state'] | 'lost', text: string): void {
  const lines = text.trimEnd()
  const first = el('div', {}, el('strong', {}, titles[state]), lines.includes('\n') || lines === '' ? '' : `: ${lines}`)
  const more = lines.includes('\n') ? [el('pre', { tabindex: 0, role: 'region', 'aria-label': 'results' }, lines)] : []
  holder.replaceChildren(el('div', { class: `live ${state}`, role: 'status' }, first, ...more))
}

/** @param draw redraws the page with other data */
export function follow(first: LiveState, holder: HTMLElement, draw: (data: ExplorerData) => void): void {
  let drawn = first.version
  show(holder, first.state, first.text)
  const source = new EventSource('/events')
  source.addEventListener('message', ({ data: message }: MessageEvent<string>) => {
    const live: LiveState = JSON.parse(message)
    show(holder, live.state, live.text)
    if (live.version === drawn) return
    drawn = live.version
    void fetch('/data.json')
      .then((response) => response.json())
      .then((data: ExplorerData) => {
        // A later answer may have overtaken this one.
        if (data.live?.version === drawn) draw(data)
      })
  })
  source.addEventListener('error', () => show(holder, 'lost', ''))
}
