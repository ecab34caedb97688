// Embeds ten sentences with the model that comes with heddle, and finds the two that are most alike: node embed.mjs
import { fileURLToPath } from 'node:url'
import { openPipeline } from 'heddle/commands'

const sentences = [
  'In the beginning God created the heaven and the earth',
  'And the earth was without form and void',
  'And God said Let there be light and there was light',
  'And God saw the light that it was good',
  'The LORD is my shepherd I shall not want',
  'He maketh me to lie down in green pastures',
  'And he said unto them Go ye into the city',
  'And he said unto her Go thou into the house',
  'Now these are the names of the children of Israel',
  'Who is this that cometh from Edom',
]
const shipped = new URL('test/data/models/kjv-punct-bert', import.meta.resolve('heddle/package.json'))
const { embed, close } = await openPipeline(fileURLToPath(shipped))
const rows = await embed(sentences, { pooling: 'mean', normalize: true })
close()

const pairs = rows.flatMap((a, i) =>
  rows.slice(0, i).map((b, j) => ({ i, j, cosine: a.reduce((sum, value, c) => sum + value * (b[c] ?? 0), 0) })),
)
const [best] = pairs.sort((a, b) => b.cosine - a.cosine)
console.log(rows.length, best?.cosine.toFixed(3), sentences[best?.i ?? 0], '|', sentences[best?.j ?? 0])
