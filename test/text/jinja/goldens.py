"""Renders chat templates with Python's Jinja as Hugging Face does, and writes what they give to goldens.json.

The templates are written in the manner of ten model families: what each does with loops, namespaces, macros, tools and values.
Run: python3 goldens.py (Jinja 3.1).
"""
import json
from pathlib import Path

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

CHATML = """{% for m in messages %}
{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

LLAMA2 = """{%- if messages[0].role == 'system' %}
    {%- set system = '<<SYS>>\\n' ~ messages[0].content ~ '\\n<</SYS>>\\n\\n' %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set system = '' %}
    {%- set rest = messages %}
{%- endif %}
{%- for m in rest %}
    {%- if (m.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('roles must alternate') }}
    {%- endif %}
    {%- if m.role == 'user' %}
        {{- bos_token ~ '[INST] ' ~ (system if loop.first else '') ~ m.content.strip() ~ ' [/INST]' }}
    {%- else %}
        {{- ' ' ~ m.content | trim ~ ' ' ~ eos_token }}
    {%- endif %}
{%- endfor %}"""

LLAMA3 = """{{- bos_token }}
{%- if not date_string is defined %}{% set date_string = '26 Jul 2024' %}{% endif %}
{%- macro head(role) -%}<|start_header_id|>{{ role }}<|end_header_id|>{{ '\\n\\n' }}{%- endmacro %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = '' %}
{%- endif %}
{{- head('system') ~ 'Today Date: ' ~ date_string ~ '\\n' ~ system ~ '<|eot_id|>' }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- '\\n\\n' }}
    {%- endfor %}
{%- endif %}
{%- for m in messages %}
    {%- if m.role == 'ipython' or m.role == 'tool' %}
        {{- head('ipython') }}
        {%- if m.content is mapping or (m.content is iterable and m.content is not string) %}{{ m.content | tojson }}{% else %}{{ m.content }}{% endif %}
        {{- '<|eot_id|>' }}
    {%- elif 'tool_calls' in m %}
        {%- if m.tool_calls | length != 1 %}{{ raise_exception('one call at once') }}{% endif %}
        {%- set call = m.tool_calls[0].function %}
        {{- head('assistant') ~ '{"name": "' ~ call.name ~ '", "parameters": ' ~ (call.arguments | tojson) ~ '}' ~ '<|eot_id|>' }}
    {%- else %}
        {{- head(m.role) ~ m.content | trim ~ '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ head('assistant') }}{% endif %}"""

MISTRAL = """{%- set ns = namespace(last=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}
{{- bos_token }}
{%- for m in messages %}
    {%- if m.role == 'user' %}
        {%- if tools and loop.index0 == ns.last %}
            {{- '[AVAILABLE_TOOLS] [' }}
            {%- for t in tools %}
                {{- '{' }}
                {%- for k, v in t.function.items() if k != 'strict' %}
                    {{- '"' ~ k ~ '": ' }}{{ '"' ~ v ~ '"' if v is string else v | tojson }}{{ ', ' if not loop.last }}
                {%- endfor %}
                {{- '}' ~ (']' if loop.last else ', ') }}
            {%- endfor %}
            {{- '[/AVAILABLE_TOOLS]' }}
        {%- endif %}
        {{- '[INST] ' ~ m.content ~ '[/INST]' }}
    {%- elif m.tool_calls is defined and m.tool_calls is not none %}
        {{- '[TOOL_CALLS] ' ~ (m.tool_calls | map(attribute='function') | list | tojson) ~ eos_token }}
    {%- elif m.role == 'tool' %}
        {{- '[TOOL_RESULTS] {"content": ' ~ m.content ~ '}[/TOOL_RESULTS]' }}
    {%- elif m.role == 'assistant' %}
        {{- ' ' ~ m.content ~ eos_token }}
    {%- endif %}
{%- endfor %}"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}
{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}
{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"""

PHI3 = """{% for m in messages %}{% if m.role == 'system' and m.content %}<|system|>
{{ m.content + '<|end|>
' }}{% elif m.role in ['user', 'assistant'] %}{{ '<|' ~ m.role ~ '|>' }}
{{ m.content }}<|end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% else %}{{ eos_token }}{% endif %}"""

QWEN3 = """{%- if tools %}
    {{- '<|im_start|>system\\n# Tools\\n<tools>' }}
    {%- for tool in tools %}{{ '\\n' }}{{ tool | tojson }}{% endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi=true, last=messages|length - 1) %}
{%- for m in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi and m.role == 'user' and not (m.content.startswith('<tool_response>') and m.content.endswith('</tool_response>')) %}
        {%- set ns.multi = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content if m.content is string else '' %}
    {%- if m.role == 'assistant' %}
        {%- set thought = '' %}
        {%- if '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if loop.index0 > ns.last and thought %}{{ '<think>\\n' ~ thought ~ '\\n</think>\\n\\n' }}{% endif %}
        {{- content }}
        {%- for call in m.tool_calls or [] %}
            {{- '\\n<tool_call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' }}
            {%- if call.function.arguments is string %}{{ call.function.arguments }}{% else %}{{ call.function.arguments | tojson }}{% endif %}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif m.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{% endif %}
        {{- '\\n<tool_response>\\n' ~ content ~ '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}
    {%- else %}
        {{- '<|im_start|>' ~ m.role ~ '\\n' ~ content ~ '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}"""

DEEPSEEK = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(first=true, tool=false, system='') %}
{%- for m in messages %}{% if m['role'] == 'system' %}{% set ns.system = m['content'] %}{% endif %}{% endfor %}
{{- bos_token }}{{ ns.system }}
{%- for m in messages %}
    {%- if m['role'] == 'user' %}{% set ns.tool = false %}{{ '<User>' + m['content'] }}{% endif %}
    {%- if m['role'] == 'assistant' and m['content'] is none %}
        {%- for call in m['tool_calls'] %}
            {%- if ns.first %}{{ '<Assistant><calls>' ~ call['type'] ~ '<sep>' ~ call['function']['name'] ~ '\\n' ~ call['function']['arguments'] }}{% set ns.first = false %}
            {%- else %}{{ '\\n' ~ call['type'] ~ call['function']['arguments'] }}{% endif %}
        {%- endfor %}{{ '<end>' }}
    {%- endif %}
    {%- if m['role'] == 'assistant' and m['content'] is not none %}
        {%- set content = m['content'] %}
        {%- if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}
        {{- '<Assistant>' + content + eos_token }}
    {%- endif %}
    {%- if m['role'] == 'tool' %}{{ '<out>' + m['content'] }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<Assistant>' }}{% endif %}"""

COMMAND = """{{ bos_token }}{% for m in messages %}
{{ '<|' ~ m.role | upper ~ '|>' }}{% if m.role == 'system' %}{{ m.content }}{% continue %}{% endif %}
{%- if m.content == 'stop' %}{{ '!' }}{% break %}{% endif %}
{%- for word in (m.content or '').split(' ') %}{{ word }}{% if word == 'two' %}{{ '...' }}{% break %}{% endif %}{{ '_' }}{% endfor %}
{%- else %}{{ 'nothing' }}{% endfor %}
{%- for t in tools or [] %}{{ '\\ndef ' ~ t.function.name ~ '(' ~ (t.function.parameters.properties.keys() | list | join(', ')) ~ ')' }}{% endfor %}"""

GRANITE = """{%- for m in messages %}{{ loop.index ~ '/' ~ loop.length ~ ' ' ~ (loop.last | string) ~ ' ' }}{{ m }}{{ '\\n' }}{% endfor %}
{{- tools }} {{ documents }} {{ add_generation_prompt }} {{ numbers }} {{ numbers | join(', ') }} {{ 'x' ~ none ~ true ~ 1.0 ~ 2 }} {{ nothing }}"""

PLAIN = [{"role": "user", "content": " Hi 'there' "}, {"role": "assistant", "content": "One two three"}, {"role": "user", "content": "é \"q\"\n?"}]
SYSTEM = [{"role": "system", "content": "Be kind."}, *PLAIN]
STOPS = [*SYSTEM, {"role": "assistant", "content": "stop"}, {"role": "user", "content": "never"}]
THOUGHT = [PLAIN[0], {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYes."}, {"role": "user", "content": "Why?"}]
CALLS = [{"type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2.5, "c": [True, None, "x"]}}}]
TOOLED = [PLAIN[0], {"role": "assistant", "content": None, "tool_calls": CALLS}, {"role": "tool", "content": "3.5"}]
TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds <a> & 'b'", "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}}}]
NUMBERS = {"numbers": [1, 0.5, 1e-7, 1e22, -0.25, True, None, "it's", 'a"b', "both'\"", "new\nline", {"k": ["v"]}, []]}

CASES = [
    ("chatml", CHATML, [(SYSTEM, {}), (PLAIN, {"add_generation_prompt": False})]),
    ("llama2", LLAMA2, [(PLAIN, {}), (SYSTEM, {}), ([PLAIN[1]], {})]),
    ("llama3", LLAMA3, [(SYSTEM, {}), (TOOLED, {"tools": TOOLS}), (PLAIN, {"date_string": "1 Jan 2025"})]),
    ("mistral", MISTRAL, [(PLAIN, {}), (TOOLED, {"tools": TOOLS})]),
    ("gemma", GEMMA, [(PLAIN, {}), (SYSTEM, {})]),
    ("phi3", PHI3, [(SYSTEM, {}), (PLAIN, {"add_generation_prompt": False})]),
    ("qwen3", QWEN3, [(THOUGHT, {"enable_thinking": False}), (TOOLED, {"tools": TOOLS}), (THOUGHT[:2], {})]),
    ("deepseek", DEEPSEEK, [(SYSTEM, {}), (TOOLED, {}), (THOUGHT, {})]),
    ("command", COMMAND, [(STOPS, {}), (PLAIN, {"tools": TOOLS})]),
    ("granite", GRANITE, [(SYSTEM, NUMBERS), (TOOLED, {**NUMBERS, "tools": TOOLS})]),
]


def refuse(message):
    raise TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def render(template, messages, variables):
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    values = {"bos_token": "<s>", "eos_token": "</s>", "tools": None, "documents": None, "add_generation_prompt": True, **variables}
    try:
        return {"text": environment.from_string(template).render(messages=messages, **values)}
    except TemplateError as error:
        return {"refused": str(error)}


goldens = [
    {"family": family, "template": template, "cases": [{"messages": messages, "variables": variables, **render(template, messages, variables)} for messages, variables in cases]}
    for family, template, cases in CASES
]
Path(__file__).with_name("goldens.json").write_text(json.dumps(goldens, indent=1, ensure_ascii=False) + "\n")
