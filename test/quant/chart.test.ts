import { expect, it } from 'vitest'
import { thresholdChart } from '../../src/quant/chart.js'
import { perSite } from '../../src/quant/sites.js'

const layer = (amax: number, threshold: number) => ({ amax: perSite(() => amax), threshold: perSite(() => threshold) })
const bars = (...layers: ReturnType<typeof layer>[]): string[] =>
  thresholdChart(layers)
    .split('\n')
    .slice(1, 1 + layers.length)

it('draws bars of a site on one scale, saturated ones lighter', () => {
  expect(bars(layer(4, 4), layer(2, 1))).toEqual([
    `  0 ${'█'.repeat(48)} 4.000`,
    `  1 ${'█'.repeat(12)}${'░'.repeat(12)} 1.000 of 2.000`,
  ])
})
it('shows values too small to draw, and nothing without values', () => {
  expect(bars(layer(4, 0.001), layer(4, 3.999), layer(0, 0))).toEqual([
    `  0 █${'░'.repeat(47)} 0.001000 of 4.000`,
    `  1 ${'█'.repeat(47)}░ 3.999 of 4.000`,
    '  2 0',
  ])
})
it('aligns many layers', () => expect(thresholdChart(Array.from({ length: 11 }, () => layer(1, 1)))).toContain('\n   9 █'))
