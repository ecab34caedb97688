/** Which models continue texts, by their files alone: whoever opens another kind tells them apart first. */
import { join } from 'node:path'
import { z } from 'zod'
import { readConfigFile } from '../checkpoint/config_file.js'
import { isLlamaType } from '../models/llama/families.js'
import { isGguf } from '../models/llama/open_files.js'

const modelType = z.looseObject({ model_type: z.string().optional() })

/** Whether a path is a LLaMA-like model: one file, or a folder by its configuration. @throws usage `config.read`, `config.json` */
export async function continuesText(folder: string): Promise<boolean> {
  if (isGguf(folder)) return true
  const parsed = modelType.safeParse(await readConfigFile(join(folder, 'config.json')))
  return parsed.success && isLlamaType(parsed.data.model_type)
}
