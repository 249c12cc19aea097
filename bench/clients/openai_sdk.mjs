// The openai SDK in JavaScript: chat, responses, embeddings.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
const model = "rag-assistant";
const question = "What does the lamp of the lighthouse burn?";
const messages = [{ role: "user", content: question }];

const chat = await client.chat.completions.create({ model, messages });
console.log("chat:", chat.choices[0].message.content, "| history_trimmed:", chat.history_trimmed);

const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
const whole = await stream.finalChatCompletion();
console.log("stream:", whole.choices[0].message.content, "|", whole.usage.total_tokens, "tokens");

const first = await client.responses.create({ model, input: question });
const second = await client.responses.create({ model, input: "And who trims it?", previous_response_id: first.id });
console.log("response:", second.output_text, "| behind", second.previous_response_id);
const kinds = [];
for await (const event of await client.responses.create({ model, input: question, stream: true })) kinds.push(event.type);
console.log("  streamed:", kinds.length, "events, the last:", kinds.at(-1));

const height = { name: "height", parameters: { type: "object", properties: { lamp: { type: "string" } } } };
const runner = client.chat.completions.runTools({
  model,
  messages,
  tools: [{ type: "function", function: { ...height, function: () => "40 m", parse: JSON.parse } }],
});
console.log("tool:", await runner.finalContent(), "|", runner.messages.map((one) => one.role).join(", "));
const schema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
const response_format = { type: "json_schema", json_schema: { name: "fuel", schema } };
const formed = await client.chat.completions.create({ model, messages, response_format });
console.log("schema:", formed.choices[0].message.content);
try {
  await client.chat.completions.create({ model, messages, n: 2 });
} catch (error) {
  console.log("refused:", error.constructor.name, error.status, error.error.message);
}
const embedded = await client.embeddings.create({ model: "rag-assistant-embeddings", input: ["lamp", "ferry"] });
console.log("embeddings:", embedded.data.map((one) => one.embedding.length).join(", "));
