{{/*
Building blocks of all pods. Every pod satisfies the Pod Security level `restricted`. The comment above a template names
the template's argument after a colon: `root` is the root context of the chart, and `dict a, b` is a dict with the keys a
and b.
*/}}

{{/* The settings in `pods` with the overrides of one process: dict root, values (of the process) */}}
{{- define "formgate.podSettings" -}}
{{- include "formgate.overridden" (dict "base" .root.Values.pods "own" .values.pods) -}}
{{- end -}}

{{/*
Settings with overrides, in JSON: dict base, own. The members of maps are merged; an empty value in `own`, such as {},
removes the value in `base`.
*/}}
{{- define "formgate.overridden" -}}
{{- $settings := mergeOverwrite (deepCopy .base) (deepCopy .own) -}}
{{- range $name, $value := .own -}}
{{- if empty $value -}}{{- $_ := set $settings $name $value -}}{{- end -}}
{{- end -}}
{{- toJson $settings -}}
{{- end -}}

{{/* Metadata of a pod template: dict root, component, values, annotations (optional) */}}
{{- define "formgate.podMetadata" -}}
{{- $settings := fromJson (include "formgate.podSettings" .) -}}
labels:
  {{- toYaml (merge (fromYaml (include "formgate.podLabels" .)) $settings.labels) | nindent 2 }}
{{- with merge (.annotations | default dict) $settings.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
Labels of pods. They leave out the chart's version, so that a new chart version alone replaces no pods.
commonLabels cannot override the selector labels.
*/}}
{{- define "formgate.podLabels" -}}
{{- $fixed := merge (fromYaml (include "formgate.selectorLabels" .)) (dict "app.kubernetes.io/part-of" "formgate") -}}
{{- toYaml (merge $fixed .root.Values.commonLabels) -}}
{{- end -}}

{{/*
First part of a pod's spec: dict root, component, values, apiToken (whether the pod calls the Kubernetes API), sidecars
(whether it has the configured sidecars)
*/}}
{{- define "formgate.podSpec" -}}
{{- $settings := fromJson (include "formgate.podSettings" .) -}}
serviceAccountName: {{ include "formgate.serviceAccountName" . }}
automountServiceAccountToken: {{ .apiToken | default false }}
enableServiceLinks: false
securityContext:
  {{- include "formgate.podSecurityContext" $settings | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $settings.runtimeClassName }}
runtimeClassName: {{ . | quote }}
{{- end }}
{{- with $settings.schedulerName }}
schedulerName: {{ . | quote }}
{{- end }}
{{- with $settings.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with $settings.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $settings.hostAliases }}
hostAliases:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .sidecars | default false | ternary $settings.sidecars list }}
# A restartPolicy of Always makes an init container a sidecar, which Kubernetes stops after the process.
initContainers:
  {{- range . }}
  -
    {{- toYaml (merge (dict "restartPolicy" "Always") .) | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Security context of a pod: dict runAsUser, runAsGroup, fsGroup */}}
{{- define "formgate.podSecurityContext" -}}
runAsNonRoot: true
{{- range $key := list "runAsUser" "runAsGroup" "fsGroup" }}
{{- /* null in the operator's values removes the key. */}}
{{- if and (hasKey $ $key) (not (kindIs "invalid" (get $ $key))) }}
{{ $key }}: {{ int64 (get $ $key) }}
{{- end }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "formgate.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Topology spread of a component with several replicas: dict root, component, values */}}
{{- define "formgate.topologySpread" -}}
{{- $settings := fromJson (include "formgate.podSettings" .) -}}
{{- with $settings.topologySpread }}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ .topologyKey | quote }}
    maxSkew: {{ int .maxSkew }}
    whenUnsatisfiable: {{ .whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "formgate.selectorLabels" $ | nindent 8 }}
    {{- /* During a rollout, Kubernetes spreads old and new pods independently. */}}
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end }}
{{- end -}}

{{/* The container of a process: dict root, name, values, args, env (YAML) */}}
{{- define "formgate.container" -}}
name: {{ .name }}
image: {{ include "formgate.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: {{ toJson .args }}
env:
  {{- $settings := fromJson (include "formgate.podSettings" .) }}
  {{- .env | trim | nindent 2 }}
  {{- with $settings.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $settings.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
securityContext:
  {{- include "formgate.securityContext" .root | nindent 2 }}
# Puts the last log lines, which state why a process could not start, into the pod's status.
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{/* The configured mounts of a process: dict root, values (of the process) */}}
{{- define "formgate.extraVolumeMounts" -}}
{{- with (fromJson (include "formgate.podSettings" .)).extraVolumeMounts -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{- define "formgate.extraVolumes" -}}
{{- with (fromJson (include "formgate.podSettings" .)).extraVolumes -}}{{- toYaml . -}}{{- end -}}
{{- end -}}

{{/* The object with the certificates of further authorities, in JSON: {kind, name}, or {} if there is none. root */}}
{{- define "formgate.certificates" -}}
{{- with .Values.caCertificates -}}
{{- if .secret -}}{{- dict "kind" "Secret" "name" .secret | toJson -}}
{{- else if .configMap -}}{{- dict "kind" "ConfigMap" "name" .configMap | toJson -}}
{{- else -}}{}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Volume mounts of every container that runs the Formgate image: root */}}
{{- define "formgate.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if include "formgate.certificates" . | fromJson }}
- name: ca
  mountPath: /etc/formgate/ca
  readOnly: true
{{- end }}
{{- end -}}

{{- define "formgate.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- with include "formgate.certificates" . | fromJson }}
- name: ca
  {{- if eq .kind "Secret" }}
  secret:
    secretName: {{ .name | quote }}
  {{- else }}
  configMap:
    name: {{ .name | quote }}
  {{- end }}
    items:
      - key: {{ $.Values.caCertificates.key | quote }}
        path: ca.crt
{{- end }}
{{- end -}}
