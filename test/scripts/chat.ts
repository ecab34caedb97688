// Answers a message piece by piece up to a stop string, then says how likely each token was: node chat.mjs MODEL 'And God said'
import { openLlama } from 'heddle/commands'
import { promptIds } from 'heddle/text'

const [folder = 'MODEL', said = 'In the beginning'] = process.argv.slice(2)
const model = await openLlama(folder)
const messages = [{ role: 'user', content: said }]

const stream = model.chat(messages, { stream: true, stop: [',', '.'], maxNewTokens: 40 })
for await (const piece of stream) process.stdout.write(piece)
const { ids = [], finish, stop } = stream.written ?? {}
console.log(`\n(${finish}${stop === undefined ? '' : ` at ${stop}`})`)

const reader = await model.reader()
const prompt = promptIds({ messages }, reader)
const [score] = await model.model.score([{ inputIds: [...prompt, ...ids] }])
for (const [i, id] of ids.entries()) {
  const logProbability = -(score?.losses[prompt.length - 1 + i] ?? Number.NaN)
  console.log(logProbability.toFixed(3), JSON.stringify(reader.tokenizer?.decode([id])))
}
model.close()
