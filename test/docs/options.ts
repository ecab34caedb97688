/** Commands in documents and workflows, compared with the verbs' own help. */
import { heddle } from '../cli/host.js'

/** A command without the program that starts it. */
export const bare = (command: string): string => command.replace(/^(npx|node dist\/cli\.js) (?=heddle )/, '')

/** The first option of a heddle command that its verb does not have, by the verb's own help. */
export async function refusedOption(command: string): Promise<string | undefined> {
  const [name, ...words] = bare(command)
    .replace(/^[\w/]*\/?heddle /, 'heddle ')
    .split(' ')
  if (name !== 'heddle') return undefined
  // A packed command has the options of its own verb.
  if (words[0] === 'pack' && words[1] !== undefined) return refusedOption(['heddle', ...words.slice(1)].join(' '))
  const first = words.findIndex((word) => word.startsWith('-'))
  const verb = words.slice(0, first < 0 ? undefined : first)
  let help = ''
  for (let length = Math.min(2, verb.length); length > 0 && help === ''; length--) {
    const { exitCode, out } = await heddle(['help', ...verb.slice(0, length)])
    if (exitCode === 0) help = out
  }
  if (help === '') return verb[0]
  return words.find((word) => word.startsWith('--') && !new RegExp(`${word}[ ,\\n]`).test(help))
}
