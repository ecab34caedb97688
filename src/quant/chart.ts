/** A chart of thresholds for a terminal: for each site and layer how much of the observed range is quantised, and what saturates. */
import { type PerSite, sites } from './sites.js'

export interface Thresholds {
  /** The largest magnitude that was observed. */
  readonly amax: PerSite<number>
  readonly threshold: PerSite<number>
}

const width = 48
const inside = '█'
const beyond = '░'

/** Four significant digits. */
export const magnitude = (value: number): string => (value === 0 ? '0' : value.toPrecision(4))

/**
 * One bar a layer, in groups by site. The bars of a site share a scale: its longest spans the largest magnitude of any layer. The solid
 * part is what the threshold keeps, the light part saturates.
 */
export function thresholdChart(layers: readonly Thresholds[]): string {
  const digits = String(layers.length - 1).length
  return sites
    .map((site) => {
      const most = Math.max(...layers.map(({ amax }) => amax[site]))
      const bars = layers.map(({ amax, threshold }, layer) => {
        const cells = (value: number): number => (most === 0 ? 0 : Math.round((Math.min(value, most) / most) * width))
        const saturates = threshold[site] < amax[site]
        // A part that saturates is seen, and so is one that is kept.
        const whole = Math.max(cells(amax[site]), (threshold[site] > 0 ? 1 : 0) + (saturates ? 1 : 0))
        const kept = Math.max(Math.min(cells(threshold[site]), whole - (saturates ? 1 : 0)), threshold[site] > 0 ? 1 : 0)
        const rest = whole - kept
        const bar = `${inside.repeat(kept)}${beyond.repeat(rest)}`
        const label = `${magnitude(threshold[site])}${saturates ? ` of ${magnitude(amax[site])}` : ''}`
        return `  ${String(layer).padStart(digits)} ${bar}${bar === '' ? '' : ' '}${label}`
      })
      return [site, ...bars].join('\n')
    })
    .join('\n')
    .concat('\n')
}
