/** Formats of numbers and names of measured runs. */
import { milliseconds } from '../../bench/table.js'

export const unknown = '–'

/** `m=64 n=256` */
export const dimsText = (dims: Readonly<Record<string, number>>): string =>
  Object.entries(dims)
    .map(([name, extent]) => `${name}=${extent}`)
    .join(' ')

export const sizeText = ({ batch, seq }: { readonly batch: number; readonly seq: number }): string => `${batch}x${seq}`

export const percentOf = (share: number | undefined): string => (share === undefined ? unknown : `${(100 * share).toFixed(1)} %`)

export const timeText = (value: number | undefined): string => (value === undefined ? unknown : milliseconds(value))

/** Kind of replay: one device graph, or launches by the host. */
export const replayText = (captured: boolean): string => (captured ? 'device graph' : 'step by step')
