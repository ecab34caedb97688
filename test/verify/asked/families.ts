/** The families of references by name, and the graphs that they run. */
import { attention, attentionGraphs } from './attention.js'
import { channels } from './channels.js'
import type { Reference } from './claims.js'
import { convolutions } from './convolutions.js'
import { gates } from './gates.js'
import { lowBit } from './low_bit.js'
import { norms } from './norms.js'
import { optimisers } from './optimisers.js'
import { quantisers } from './quantisers.js'
import { recurrences } from './recurrences.js'
import { sorts } from './sorts.js'

export const families = {
  ...{ recurrences, optimisers, gates, quantisers, norms, channels, convolutions, sorts, attention, lowBit },
} satisfies Readonly<Record<string, Readonly<Record<string, Reference>>>>

export const graphNames: readonly string[] = [...attentionGraphs, 'linear4', 'linear_int8', 'linear8', 'linear_added']
