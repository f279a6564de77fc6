"""Every event that a process logs, declared once: its name, and what it says.

Events carry ids, counts and codes, never words of a conversation. Those at warning or error ask for a look; the other
ones tell what happened. A name stands in the source as a literal; a test holds source and table together.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["EVENTS"]

_EVERY = {
    "probe_ready": "The probe's port answers.",
    "layout_differs": "The store is laid out by another version; the process is not ready.",
    "tracing_on": "Spans go to the collector that is named.",
    "traces_unsent": "The collector does not take spans, and why; they are dropped until it does.",
    "traces_sent_again": "It takes them again; how many were dropped is named.",
    "queue_available": "The queue's Redis answers again.",
    "queue_unavailable": "The queue's Redis does not answer; work waits in the sessions' Redis.",
    "audit": "An entry of the audit log, where no file is set for it.",
    "quota_counts_away": "What a tenant has used could not be counted; each process keeps to the quota alone.",
    "quota_counts_back": "It is counted for all processes again.",
    "audit_unwritten": "An entry could not be written to the audit file; it stands in the log instead.",
}

_GATEWAY = {
    "gateway_ready": "The API answers.",
    "gateway_stopped": "The last call was answered.",
    "load_failed": "Something that the API needs did not load; the process stays unready.",
    "keys_loaded": "Keys were read at the start.",
    "keys_reloaded": "A changed key file is in force.",
    "key_file_unusable": "A changed key file cannot be used; the keys read before stay in force.",
    "shortcut_failed": "The short way of an append or read has a fault of ours; the general way answered.",
    "request_failed": "A fault of ours; answered 500. The places are named, not the message.",
    "context_served": "A context: sections, tokens, 20 recalled ids with scores, and the summary's id, which shows a new one.",
    "context_record_failed": "A record was not written by a fault of ours.",
    "context_record_lost": "A record was not written; the context was served.",
    "context_records_dropped": "Records came faster than they could be written.",
    "session_erased": "A session was erased; what could not be checked is named.",
    "user_erased": "A user was erased, likewise.",
    "jobs_not_looked_at": "An erasure could not look into the queue; workers refuse what is left there.",
    "vectors_not_forgotten": "Vectors of changed turns are still there; a worker sweeps them.",
    "facts_not_withdrawn": "Facts of changed turns are still there; the memory worker takes them back.",
    "proposals_not_withdrawn": "Proposals of changed turns are still there, likewise.",
    "fact_vectors_wait": "Vectors of facts are behind; the memory worker follows.",
    "derived_vectors_wait": "Vectors of summaries are behind, likewise.",
    "rewrite_waits": "A store's files are to be rewritten after an erasure, later.",
    "rewrite_refused": "The server does not let us ask for that; its own schedule applies.",
    "events_look_failed": "A stream of a session's events missed a look.",
    "profile_failed": "A context was served without its profile, by a fault of ours.",
    "profile_not_read": "A context was served without its profile.",
    "profile_too_slow": "A context was served without its profile, which took too long.",
    "profile_unavailable": "A context was served without its profile; the store was away.",
    "recall_failed": "A context was served without recall, by a fault of ours.",
    "recall_refused": "The vector store refuses a search; look at its collection.",
    "recall_too_slow": "A context was served without recall, which took too long.",
    "recall_unavailable": "A context was served without recall; the vectors were away.",
    "vector_collection_missing": "Nothing was embedded yet, or by another embedder.",
    "vector_collection_created": "A collection of the configured embedder was made.",
    "turns_of_another_embedder": "An older collection holds vectors that nothing adds to.",
    "foreign_text_withheld": "A search met a text of another tenant, and held it back: this must not happen.",
}

_STORE = {
    "store_checked": "What the sessions' Redis promises.",
    "store_look_failed": "The sessions' Redis could not be looked at.",
    "store_is_not_durable": "Its settings break the durability class; appends are refused.",
    "store_is_durable_again": "They are as promised again.",
    "store_not_as_promised": "A setting that endangers sessions, and how to mend it.",
    "store_nearly_full": "New turns are refused until there is room.",
    "store_has_room": "New turns are taken again.",
    "replicas_changed": "More or fewer replicas are connected.",
    "replicas_must_confirm": "From now on a replica must have a turn before it is acknowledged.",
    "not_replicated": "Too few replicas confirmed in time; the append was refused and may be repeated.",
}

_DISPATCHER = {
    "dispatcher_started": "It reads events.",
    "dispatcher_stopped": "What it had collected is on the queue.",
    "dispatcher_totals": "What it did since it started, once a minute.",
    "dispatcher_unavailable": "A loop cannot go on; said once, the loop tries again.",
    "dispatcher_available": "It goes on.",
    "events_dropped": "The cap dropped events unread: time lost, no work.",
    "ingest_started": "It reads ingest streams.",
    "ingest_refused": "Entries that can never be applied went to the dead letters, by reason.",
    "ingest_unreadable": "A tenant's ingest stream is a key of another type; remove it. Others are read.",
    "ingest_letters_given_up": "The oldest dead letters of a tenant's ingest stream went, for there were too many.",
    "due_swept": "A pass through all sessions; a warning when entries were missing.",
}

_VECTORS = {
    "vectors_ready": "The embedded vector store answers.",
    "vectors_stopped": "Its files are closed.",
    "call_failed": "A call failed by a fault of ours.",
    "collection_created": "A collection was made.",
    "collection_deleted": "A collection was deleted.",
    "leftover_removed": "A folder of a deletion that was broken off is gone.",
    "upkeep_failed": "A flush or a vacuum failed; it is tried again.",
    "vacuumed": "Deleted points were cleared away.",
}

_WORKER = {
    "worker_started": "It takes jobs.",
    "worker_stopped": "It takes none any more.",
    "embedder_loaded": "The embedder is loaded.",
    "summarizer_loaded": "The engine is loaded.",
    "memory_loaded": "The memory worker's engine is loaded.",
    "heartbeat_failed": "The queue missed a sign of life; a job may be given to another worker.",
    "job_ended_elsewhere": "Another worker has ended the job.",
    "job_failed": "A job failed; attempts left are named.",
    "job_refused": "A job that no attempt will make better.",
    "job_does_not_end": "Something blocks the worker; it ends itself.",
    "runtime_close_timed_out": "A thread is still busy at the end.",
    "going_on_not_handed_back": "Sessions could not be handed to other workers; their leases end in seconds.",
    "start_not_noted": "The beginning of some work was not noted; a crash on it is seen one time later.",
    "end_not_noted": "The same of its end.",
    "work_failed": "Work on sessions failed by a fault of ours, with its place.",
    "work_set_aside": "Work was set aside: see `prefold dead-letters`.",
    "dead_letter_released": "Work that was set aside has succeeded.",
    "turns_embedded": "An embed job's count.",
    "turn_unreadable": "A turn of the log cannot be read.",
    "turn_refused_by_embedder": "The embedder does not take a turn.",
    "turn_refused_by_store": "The vector store does not take a turn.",
    "session_not_ended": "The end of a session left something; it is tried again.",
    "sessions_ended": "Sessions whose time had come were erased.",
}

_BUILDS = {
    "build_not_begun": "Nothing to build, or not now, and why.",
    "build_made": "A summary passed its checks: sizes, coverage, seconds.",
    "build_committed": "It stands by, or was swapped in at once.",
    "build_stale": "The session changed meanwhile; it begins anew.",
    "build_lost": "Another worker holds the session now.",
    "build_gone": "The session was erased meanwhile.",
    "build_failed": "A build failed, why, and how long the session rests; a warning once.",
    "build_fault": "A build ended by a fault of ours.",
    "builds_unavailable": "The sessions' Redis was away for some builds.",
    "engine_fault": "An engine has a fault of ours.",
    "engine_stands_in": "Another engine wrote instead, and why.",
    "prefix_shared": "A summary was written over the chat's own prefix.",
    "prefix_not_shared": "It was not, and why.",
    "prefix_refused": "The provider refused it.",
}

_MEMORY = {
    "memory_not_begun": "Nothing to remember, or not now, and why.",
    "memory_lost": "The lease went, or the session changed.",
    "memory_undone": "What was learnt was taken back.",
    "memory_failed": "A pass failed, and how long the session rests.",
    "session_remembered": "A pass ended: turns, and whether the session closed.",
    "user_erased_meanwhile": "The user was erased; nothing was kept.",
    "facts_extracted": "A model's facts, by number.",
    "model_extractor_failed": "The model's facts failed by a fault of ours; rules went on.",
    "turn_not_extracted": "A turn was passed over by a fault of ours.",
    "proposals_not_kept": "Proposals found no place.",
    "digest_not_made": "A session closed with a plainer digest.",
    "derived_text_refused": "The embedder or the store does not take a text.",
}

_MODEL = {
    "model_call": "A call: outcome, model, request id, seconds, tokens, cost.",
    "model_probe": "One call tries whether the model works again.",
    "model_breaker_opened": "A model is not asked for a while.",
    "model_breaker_closed": "It is asked again.",
    "model_key_parked": "The provider refuses the key; look at key and spend limit.",
    "model_key_released": "The key works again.",
    "retry_after_capped": "The provider asks for more patience than we have.",
    "model_without_price": "Calls of a model cannot be counted in dollars.",
    "model_gate_local": "The shared limits are away; each worker limits itself.",
    "model_gate_shared": "They are back.",
    "usage_not_noted": "A session's usage was not noted.",
    "usage_not_settled": "A reservation stays until the day ends.",
}

_GROUPS = (_EVERY, _GATEWAY, _STORE, _DISPATCHER, _VECTORS, _WORKER, _BUILDS, _MEMORY, _MODEL)

EVENTS: Final[Mapping[str, str]] = MappingProxyType({name: told for group in _GROUPS for name, told in group.items()})
"""Name → what it says."""
