/** Texts and pairs are encoded to the ids and types of HF's tokenizers, with the same truncation. */
import { describe, expect, it } from 'vitest'
import { tokenIds } from '../../src/cli/token_ids.js'
import { readBertConfig } from '../../src/models/encoder/config.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { familyCases, familyFolder, familyNames } from './family.js'

describe.each(familyNames)('%s', (name) => {
  it('tokenizes texts, pairs and truncated pairs like HF', async () => {
    const folder = familyFolder(name)
    const { tokenTypes } = await readBertConfig(`${folder}/config.json`)
    const cases = await familyCases(name)
    expect(cases.filter(({ truncate }) => truncate !== undefined).length).toBeGreaterThan(4)
    for (const { text, pair, truncate: how, most = 0, refused, input_ids: inputIds, token_type_ids: typeIds } of cases) {
      const made = tokenIds(folder, [{ text, pair }], { tokenTypes, truncate: how === undefined ? undefined : { how, most } })
      if (refused) await expect(made, `${how} to ${most}`).rejects.toMatchObject({ code: 'run.truncate' })
      // With a single text all types are 0; undefined means the same.
      else expect(await made, `${how} to ${most}`).toEqual([{ inputIds, typeIds: pair === undefined ? undefined : typeIds }])
    }
  })
})

describe('truncation of texts', () => {
  const load = () => loadTokenizer(familyFolder('bert-pairs'))

  it('removes tokens from the end of the longer text, and of the only one', async () => {
    const tokenizer = await load()
    const cut = (text: string, pair: string | undefined, most: number) =>
      tokenizer.encode(text, { pair, truncate: { how: 'longest_first', most } })
    expect(cut('the deep the deep', undefined, 4).tokens).toEqual(['[CLS]', 'the', 'deep', '[SEP]'])
    expect(cut('the deep the', 'god', 6).tokens).toEqual(['[CLS]', 'the', 'deep', '[SEP]', 'god', '[SEP]'])
    expect(cut('god', 'the deep the', 6)).toMatchObject({
      tokens: ['[CLS]', 'god', '[SEP]', 'the', 'deep', '[SEP]'],
      types: [0, 0, 0, 1, 1, 1],
    })
    expect(cut('god', 'the deep', 7).tokens).toHaveLength(6)
  })

  it('refuses texts that cannot be truncated, with the reason', async () => {
    const tokenizer = await load()
    expect(() => tokenizer.encode('the deep', { truncate: { how: 'only_second', most: 3 } })).toThrow('it has no second text')
    expect(() => tokenizer.encode('the', { pair: 'deep', truncate: { how: 'longest_first', most: 3 } })).toThrow('leave no room')
    expect(() => tokenizer.encode('the deep', { pair: 'the', truncate: { how: 'only_second', most: 5 } })).toThrow(
      'the second text has 1 tokens, and none would be left',
    )
  })
})
