/** Every family of BERT-like models. */
import { bert } from './bert.js'
import { distilbert } from './distilbert.js'
import type { EncoderFamily } from './family.js'
import { prelayernorm } from './prelayernorm.js'
import { roberta } from './roberta.js'

export const families = { bert, distilbert, prelayernorm, roberta } as const satisfies Readonly<Record<string, EncoderFamily>>

export type FamilyName = keyof typeof families
