/** A terminal chart of thresholds: per site and layer, the quantised and the saturated part of the observed range. */
import { type PerSite, sites } from './sites.js'

export interface Thresholds {
  /** Largest observed magnitude. */
  readonly amax: PerSite<number>
  readonly threshold: PerSite<number>
}

const width = 48
const inside = '█'
const beyond = '░'

/** Formats a magnitude with four significant digits. */
export const magnitude = (value: number): string => (value === 0 ? '0' : value.toPrecision(4))

/**
 * One bar per layer, grouped by site. The bars of a site share a scale: the longest spans the largest magnitude of any layer. The solid
 * part lies within the threshold; the light part saturates.
 */
export function thresholdChart(layers: readonly Thresholds[]): string {
  const digits = String(layers.length - 1).length
  return sites
    .map((site) => {
      const most = Math.max(...layers.map(({ amax }) => amax[site]))
      const bars = layers.map(({ amax, threshold }, layer) => {
        const cells = (value: number): number => (most === 0 ? 0 : Math.round((Math.min(value, most) / most) * width))
        const saturates = threshold[site] < amax[site]
        // Non-empty parts, saturated or not, have at least one cell.
        const whole = Math.max(cells(amax[site]), (threshold[site] > 0 ? 1 : 0) + (saturates ? 1 : 0))
        const solid = Math.max(Math.min(cells(threshold[site]), whole - (saturates ? 1 : 0)), threshold[site] > 0 ? 1 : 0)
        const rest = whole - solid
        const bar = `${inside.repeat(solid)}${beyond.repeat(rest)}`
        const label = `${magnitude(threshold[site])}${saturates ? ` of ${magnitude(amax[site])}` : ''}`
        return `  ${String(layer).padStart(digits)} ${bar}${bar === '' ? '' : ' '}${label}`
      })
      return [site, ...bars].join('\n')
    })
    .join('\n')
    .concat('\n')
}
