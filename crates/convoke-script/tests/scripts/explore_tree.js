// Walks a tree of questions: an agent may ask for more detail, two levels down at most.
// args: {"root":"How does a request travel through the system?"}
// expect-null: returned
// expect-half: returned
// order: free
export const meta = {
  name: 'explore-tree',
  description: 'Ask, follow the questions that come up, stop two levels down',
  phases: [{ title: 'Level 0' }, { title: 'Level 1' }, { title: 'Level 2' }],
}

const MAX_DEPTH = 2
const NODE = {
  type: 'object',
  required: ['answer', 'questions'],
  properties: {
    answer: { type: 'string' },
    questions: { type: 'array', maxItems: 2, items: { type: 'string', maxLength: 60 } },
  },
}

async function explore(question, depth) {
  const node = await agent(`(${depth}) ${question}`, { label: `${depth}: ${question.slice(0, 24)}`, phase: `Level ${depth}`, schema: NODE })
  if (node === null) return { question, answer: null, below: [] }
  if (depth >= MAX_DEPTH) return { question, answer: node.answer, below: [] }
  const below = await parallel(node.questions.map(q => () => explore(q, depth + 1)))
  return { question, answer: node.answer, below: below.filter(Boolean) }
}

const size = tree => 1 + tree.below.reduce((n, t) => n + size(t), 0)
const depth = tree => 1 + Math.max(0, ...tree.below.map(depth))
const answered = tree => (tree.answer === null ? 0 : 1) + tree.below.reduce((n, t) => n + answered(t), 0)

let tree
try {
  tree = await explore(args?.root ?? 'What is this?', 0)
} catch (e) {
  tree = { question: args?.root, answer: null, below: [], error: e instanceof Error ? e.message : String(e) }
}
log(`${answered(tree)} of ${size(tree)} questions answered, ${depth(tree)} levels`)
return { tree, size: size(tree), depth: depth(tree), answered: answered(tree) }
