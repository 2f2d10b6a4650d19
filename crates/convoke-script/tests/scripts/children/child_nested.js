export const meta = { name: 'child-nested', description: 'Tries to start a workflow of its own' }
return await workflow('child_brief')
