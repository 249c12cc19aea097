// The anthropic SDK in JavaScript: messages, streams, tools.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.argv[2].replace(/\/v1$/, ""), apiKey: "none", maxRetries: 0 });
const model = "rag-assistant";
const max_tokens = 500;
const messages = [{ role: "user", content: "What does the lamp of the lighthouse burn?" }];

const answer = await client.messages.create({ model, max_tokens, messages });
console.log("message:", answer.content[0].text, "| history_trimmed:", answer.history_trimmed);
const whole = await client.messages.stream({ model, max_tokens, messages }).finalMessage();
console.log("stream:", whole.content[0].text, "|", whole.stop_reason);
const tools = [{ name: "height", input_schema: { type: "object", properties: { lamp: { type: "string" } } } }];
const first = await client.messages.create({ model, max_tokens, messages, tools });
const call = first.content.find((one) => one.type === "tool_use");
const result = { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "40 m" }] };
const talk = [...messages, { role: "assistant", content: first.content }, result];
const again = await client.messages.create({ model, max_tokens, messages: talk, tools });
console.log("tool:", call.name, JSON.stringify(call.input), "| with its result:", again.content[0].text);
